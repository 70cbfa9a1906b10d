/* SPDX-License-Identifier: Apache-2.0
 *
 * A job lives on its caller's stack.  It has one segment a thread; a segment has a few pieces, each taken by one atomic
 * add.  A helper starts with its own segment, so that repeated calls find their data in the same core's cache, and then
 * helps with the others.  The caller works too, and never waits for a helper that has not started.  An idle worker
 * spins for 20 to 150 microseconds before it sleeps, since waking a sleeper costs more than a small job.  A job wakes
 * as many sleepers as it needs helpers, the last to fall asleep first.  A worker that sleeps for IDLE_SECONDS ends.
 */
#include "base/system.h"

#include "base/threads.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/processors.h"
#include "base/stop.h"

enum { FIRST_GRAINS = 16 }; /* in the first piece; a grain above 1 takes some microseconds */

/* Without a tq_stop, one call of body; with one, pieces that grow until a piece takes a tick of the coarse clock, some
   milliseconds. */
static void run_range(tq_range_fn body, void *context, size_t begin, size_t end, size_t grain)
{
    const size_t first = grain <= SIZE_MAX / FIRST_GRAINS ? grain * FIRST_GRAINS : grain;
    if (end - begin <= first || !tq_stop_listens()) {
        body(context, begin, end);
        return;
    }
    uint64_t tick = tq_nanoseconds_coarse(); /* reading it takes as long as a small range: once a piece */
    for (size_t piece = first; begin < end;) {
        const size_t count = piece < end - begin ? piece : end - begin;
        body(context, begin, begin + count);
        begin += count;
        if (begin == end)
            return;
        const uint64_t now = tq_nanoseconds_coarse();
        if (now == tick ? tq_stop_after(0) : tq_stop_now())
            return;
        if (now == tick && piece <= SIZE_MAX / 4)
            piece *= 4;
        tick = now;
    }
}

static int clamp_threads(long count)
{
    return count < 1 ? 1 : count > TQ_MAX_THREADS ? TQ_MAX_THREADS : (int)count;
}

long tq_threads_wanted(const char *text)
{
    char *end;
    if (!text || !*text)
        return 0;
    const long wanted = strtol(text, &end, 10);
    return wanted > 0 && !*end ? wanted : -1;
}

#if defined(_WIN32)

void tq_threads_init(void)
{
}

long tq_forks(void)
{
    return 0;
}

void tq_parallel_for(size_t count, size_t grain, int threads, tq_range_fn body, void *context)
{
    (void)threads;
    if (count)
        run_range(body, context, 0, count, grain);
}

int tq_default_threads(void)
{
    return 1;
}

#else

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#define PIECES 4   /* of a segment, for balance */
#define ASK_EVERY 20000000 /* nanoseconds between two questions whether to stop, while helpers work */
#define SPINS 4000 /* pauses before sleeping: 20 to 150 microseconds, by processor */
#define IDLE_SECONDS 2 /* of sleep, after which a worker ends */

struct segment {
    _Alignas(64) atomic_size_t next; /* its own line: two cores take from two segments */
    size_t end;
};

struct job {
    tq_range_fn body;
    void *context;
    size_t grain, piece;
    int segments, joined; /* joined: helpers so far; under the pool's lock */
    atomic_int active;    /* helpers at work */
    tq_denormals denormals; /* the caller's */
    tq_listener listener;   /* of its helpers */
    struct job *after;
    struct segment segment[TQ_MAX_THREADS];
};

/* A sleeping worker; on the worker's stack. */
struct sleeper {
    pthread_cond_t wake;
    bool called;
    struct sleeper *before; /* the previous one to fall asleep */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t idle; /* a helper left */
    struct job *jobs;    /* that can take another helper */
    struct sleeper *last;
    int workers, spinning;
    atomic_uint posted; /* counts jobs; spinning workers watch it */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

static atomic_long forks; /* stored in a new child, which has one thread */

static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void work(struct job *job, int first)
{
    for (int i = 0; i < job->segments; i++) {
        struct segment *s = &job->segment[(first + i) % job->segments];
        for (;;) {
            size_t begin = atomic_fetch_add_explicit(&s->next, job->piece, memory_order_relaxed);
            if (begin >= s->end)
                break;
            size_t left = s->end - begin;
            run_range(job->body, job->context, begin, begin + (left < job->piece ? left : job->piece), job->grain);
        }
    }
}

/* Under the lock. */
static void unlink_job(struct job *job)
{
    for (struct job **p = &pool.jobs; *p; p = &(*p)->after)
        if (*p == job) {
            *p = job->after;
            return;
        }
}

/* Under the lock: a job with room for one more helper, joined; NULL if there is none. */
static struct job *join_job(int *first)
{
    struct job *job = pool.jobs;
    if (!job)
        return NULL;
    *first = ++job->joined;
    atomic_fetch_add_explicit(&job->active, 1, memory_order_relaxed);
    if (job->joined == job->segments - 1)
        unlink_job(job);
    return job;
}

/* Under the lock. */
static void forget(struct sleeper *sleeper)
{
    struct sleeper **p = &pool.last;
    while (*p != sleeper)
        p = &(*p)->before;
    *p = sleeper->before;
}

/* Under the lock, which it releases while it sleeps.  false: no call for IDLE_SECONDS.  Setting the clock changes that
   time, which costs a thread at most. */
static bool sleep_until_called(void)
{
    struct sleeper self = {.before = pool.last};
    struct timespec end;
    pthread_cond_init(&self.wake, NULL);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += IDLE_SECONDS;
    pool.last = &self;
    while (!self.called && pthread_cond_timedwait(&self.wake, &pool.lock, &end) == 0) {
    }
    if (!self.called)
        forget(&self);
    pthread_cond_destroy(&self.wake);
    return self.called;
}

/* Under the lock. */
static void call_sleepers(int wanted)
{
    for (struct sleeper *s; wanted > 0 && (s = pool.last); wanted--) {
        pool.last = s->before;
        s->called = true;
        pthread_cond_signal(&s->wake);
    }
}

/* Under the lock, which it releases while it spins. */
static void spin_until_posted(void)
{
    const unsigned before = atomic_load(&pool.posted);
    pool.spinning++;
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < SPINS && atomic_load_explicit(&pool.posted, memory_order_relaxed) == before; i++)
        pause_briefly();
    pthread_mutex_lock(&pool.lock);
    pool.spinning--;
}

static void *worker(void *unused)
{
    struct job *job;
    int first;
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    do {
        while ((job = join_job(&first))) {
            pthread_mutex_unlock(&pool.lock);
            tq_denormals_restore(job->denormals);
            tq_stop_enter(job->listener);
            work(job, first);
            /* The job may not exist after this: its caller waits only until `active` is 0. */
            bool last = atomic_fetch_sub_explicit(&job->active, 1, memory_order_acq_rel) == 1;
            pthread_mutex_lock(&pool.lock);
            if (last)
                pthread_cond_broadcast(&pool.idle);
        }
        spin_until_posted();
    } while (pool.jobs || sleep_until_called());
    pool.workers--;
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* Under the lock.  Signals belong to the program's own threads. */
static void add_workers(int wanted)
{
    sigset_t all, before;
    if (pool.workers >= wanted)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.workers < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker, NULL) != 0)
            break;
        pthread_detach(thread);
        pool.workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void before_fork(void)
{
    pthread_mutex_lock(&pool.lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&pool.lock);
}

/* The child has the forking thread alone: no workers, and no jobs but those of threads that no longer exist. */
static void in_child(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.idle, NULL);
    pool.jobs = NULL;
    pool.last = NULL;
    pool.workers = pool.spinning = 0;
    atomic_fetch_add(&forks, 1);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

void tq_threads_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
}

long tq_forks(void)
{
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

static void post(struct job *job)
{
    pthread_mutex_lock(&pool.lock);
    add_workers(job->segments - 1);
    job->after = pool.jobs;
    pool.jobs = job;
    atomic_fetch_add(&pool.posted, 1);
    call_sleepers(job->segments - 1 - pool.spinning);
    pthread_mutex_unlock(&pool.lock);
}

/* Under the lock: waits for a helper to leave.  Helpers cannot ask whether to stop; so their caller does, now and then.
 */
static void wait_idle(void)
{
    if (!tq_stop_listens()) {
        pthread_cond_wait(&pool.idle, &pool.lock);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ASK_EVERY;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&pool.idle, &pool.lock, &until) != 0) {
        pthread_mutex_unlock(&pool.lock);
        tq_stop_now();
        pthread_mutex_lock(&pool.lock);
    }
}

static void await_helpers(struct job *job)
{
    pthread_mutex_lock(&pool.lock);
    unlink_job(job); /* no further helper joins */
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&job->active, memory_order_acquire) == 0)
            return;
        pause_briefly();
    }
    pthread_mutex_lock(&pool.lock);
    while (atomic_load_explicit(&job->active, memory_order_acquire) != 0)
        wait_idle();
    pthread_mutex_unlock(&pool.lock);
}

void tq_parallel_for(size_t count, size_t grain, int threads, tq_range_fn body, void *context)
{
    if (threads <= 1 || count <= grain) { /* without a division */
        if (count)
            run_range(body, context, 0, count, grain);
        return;
    }
    size_t grains = count / grain + (count % grain != 0);
    threads = clamp_threads(threads);
    if ((size_t)threads > grains)
        threads = (int)grains;
    tq_threads_init();

    struct job job = {.body = body, .context = context, .denormals = tq_denormals_mode(), .listener = tq_stop_helper()};
    size_t each = grains / (size_t)threads, extra = grains % (size_t)threads, at = 0;
    for (int i = 0; i < threads; i++) {
        size_t end = at + each + ((size_t)i < extra);
        atomic_init(&job.segment[i].next, at * grain);
        job.segment[i].end = end == grains ? count : end * grain;
        at = end;
    }
    job.segments = threads;
    job.grain = grain;
    job.piece = (each / PIECES + 1) * grain;
    atomic_init(&job.active, 0);
    post(&job);
    work(&job, 0);
    await_helpers(&job);
}

int tq_default_threads(void)
{
    const long wanted = tq_threads_wanted(getenv("TQ_NUM_THREADS"));
    return clamp_threads(wanted > 0 ? wanted : tq_processors());
}

#endif

int tq_threads_for(int wanted, size_t bytes, size_t bytes_a_thread)
{
    size_t paying = bytes / bytes_a_thread;
    if (wanted > 0 || paying <= 1)
        return wanted > 0 ? clamp_threads(wanted) : 1;
    int most = tq_default_threads();
    return paying < (size_t)most ? (int)paying : most;
}
