/* SPDX-License-Identifier: Apache-2.0
 *
 * A job lives on its caller's stack.  It has one segment a thread, which is taken in pieces of half of what is left.
 * Each worker has a place, which it watches while it spins.  A caller writes the first piece of a segment there, so
 * that one cache line from another core is enough to begin; further pieces are taken by compare and exchange, first
 * from the worker's own segment, then from the others: a core that a neighbour slows down leaves the rest to the
 * others.  Workers get the same segments in repeated calls, and find their data in their own caches.
 *
 * The caller works too.  It takes back the pieces of workers that have not started, and never waits for these.  A job
 * that finds too few workers waits in a list for those of other callers.  An idle worker spins for 20 to 150
 * microseconds before it sleeps, since waking a sleeper costs more than a small job.  A worker that sleeps for
 * IDLE_SECONDS ends.
 */
#include "base/system.h"

#include "base/threads.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/processors.h"
#include "base/sizes.h"
#include "base/stop.h"

enum { FIRST_GRAINS = 16 }; /* in the first piece; a grain above 1 takes some microseconds */

/* A body, and what every call of it gets. */
struct task {
    tq_share_fn body;
    void *context;
    size_t grain;
};

/* A tq_range_fn's context as a tq_share_fn. */
struct plain {
    tq_range_fn body;
    void *context;
};

static void run_plain(void *context, size_t share, size_t begin, size_t end)
{
    const struct plain *p = context;
    (void)share;
    p->body(p->context, begin, end);
}

/* Without a tq_stop, one call of body; with one, pieces that grow until a piece takes a tick of the coarse clock, some
   milliseconds. */
static void run_range(const struct task *task, size_t share, size_t begin, size_t end)
{
    const size_t grain = task->grain;
    const size_t first = grain <= SIZE_MAX / FIRST_GRAINS ? grain * FIRST_GRAINS : grain;
    if (end - begin <= first || !tq_stop_listens()) {
        task->body(task->context, share, begin, end);
        return;
    }
    uint64_t tick = tq_nanoseconds_coarse(); /* reading it takes as long as a small range: once a piece */
    for (size_t piece = first; begin < end;) {
        const size_t count = piece < end - begin ? piece : end - begin;
        task->body(task->context, share, begin, begin + count);
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

static void run_parallel(size_t count, const struct task *task, int threads)
{
    (void)threads;
    if (count)
        run_range(task, 0, 0, count);
}

bool tq_worker_spins(void)
{
    return false;
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

#define LEAST_PIECE 16 /* the part of a segment that is not cut further */
#define ASK_EVERY 20000000 /* nanoseconds between two questions whether to stop, while helpers work */
#define SPINS 4000 /* pauses before sleeping: 20 to 150 microseconds, by processor */
#define IDLE_SECONDS 2 /* of sleep, after which a worker ends */
#define PLACES (TQ_MAX_THREADS - 1) /* of workers */

enum state {
    GONE,    /* the place has no worker */
    READY,   /* the worker spins, or will soon */
    CALLED,  /* it has a piece that nobody has started */
    BUSY,    /* the worker runs it */
    AWAITED, /* and the caller sleeps until it is done */
    ASLEEP
};

/* Of grains. */
struct segment {
    _Alignas(64) atomic_size_t next; /* its own line: two cores take from two segments */
    size_t end;
};

/* A worker's: one cache line of what it needs to begin, and a second one. */
struct place {
    _Alignas(64) atomic_int state; /* READY to ASLEEP and back, and all of GONE: under the pool's lock */
    tq_denormals denormals;        /* the caller's */
    struct task task;
    size_t begin, end;
    tq_stop *stop;   /* its listener's */
    struct job *job; /* with further pieces; NULL: without */

    int segment;
    bool taken;          /* by a job; under the pool's lock */
    pthread_cond_t wake; /* from ASLEEP */
};

struct job {
    struct task task;
    tq_denormals denormals; /* the caller's */
    tq_stop *stop;          /* of its workers' listeners */
    size_t count, piece;    /* elements; the grains of the smallest pieces */
    int segments, assigned; /* assigned: segments from 1 on that have a place; in the list, under the pool's lock */
    bool several;           /* some segments have several pieces */
    bool queued;            /* it was in the list */
    struct job *after;
    struct place *place[TQ_MAX_THREADS]; /* [1 + assigned] */
    struct segment segment[TQ_MAX_THREADS];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t idle;  /* an awaited piece is done */
    struct job *waiting;  /* for workers */
    int workers;
    struct place place[PLACES];
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

static int state_of(struct place *place)
{
    return atomic_load_explicit(&place->state, memory_order_acquire);
}

static bool change(struct place *place, int from, int to)
{
    return atomic_compare_exchange_strong_explicit(&place->state, &from, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

/* Takes half of the segment's rest.  Sets [*begin, *end), elements; none where nothing is left. */
static bool next_piece(const struct job *job, struct segment *s, size_t *begin, size_t *end)
{
    size_t at = atomic_load_explicit(&s->next, memory_order_relaxed), after;
    *begin = *end = 0;
    do {
        if (at >= s->end)
            return false;
        after = at + (s->end - at) / 2;
        after = after - at < job->piece ? at + job->piece : after;
        after = after < s->end ? after : s->end;
    } while (!atomic_compare_exchange_weak_explicit(&s->next, &at, after, memory_order_relaxed, memory_order_relaxed));
    *begin = at * job->task.grain;
    *end = tq_min_size(after * job->task.grain, job->count);
    return true;
}

static void work(struct job *job, int own)
{
    size_t begin, end;
    for (int i = 0; i < job->segments; i++)
        while (next_piece(job, &job->segment[(own + i) % job->segments], &begin, &end))
            run_range(&job->task, (size_t)own, begin, end);
}

/* ---- workers ---- */

static void run_piece(const struct place *p, int share)
{
    if (p->begin < p->end)
        run_range(&p->task, (size_t)share, p->begin, p->end);
}

static void serve(struct place *p)
{
    tq_denormals_restore(p->denormals);
    tq_stop_enter((tq_listener){p->stop, false});
    run_piece(p, p->segment);
    if (p->job)
        work(p->job, p->segment);
    /* The job may not exist after this: its caller waits only while the state is BUSY. */
    if (atomic_exchange_explicit(&p->state, READY, memory_order_acq_rel) == AWAITED) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_broadcast(&pool.idle);
        pthread_mutex_unlock(&pool.lock);
    }
}

static bool spin_until_called(struct place *p)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&p->state, memory_order_relaxed) == CALLED)
            return true;
        pause_briefly();
    }
    return false;
}

/* false: no call for IDLE_SECONDS; the place is GONE.  Setting the clock changes that time, which costs a thread at
   most. */
static bool sleep_until_called(struct place *p)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += IDLE_SECONDS;
    pthread_mutex_lock(&pool.lock);
    if (change(p, READY, ASLEEP))
        while (state_of(p) == ASLEEP && pthread_cond_timedwait(&p->wake, &pool.lock, &end) == 0) {
        }
    const bool called = !change(p, ASLEEP, GONE);
    if (!called) {
        pthread_cond_destroy(&p->wake);
        pool.workers--;
    }
    pthread_mutex_unlock(&pool.lock);
    return called;
}

static void *worker(void *place)
{
    do {
        if (change(place, CALLED, BUSY))
            serve(place);
    } while (spin_until_called(place) || sleep_until_called(place));
    return NULL;
}

static bool start_worker(struct place *p)
{
    pthread_t thread;
    if (pthread_cond_init(&p->wake, NULL) != 0)
        return false;
    atomic_store(&p->state, READY);
    if (pthread_create(&thread, NULL, worker, p) == 0) {
        pthread_detach(thread);
        return true;
    }
    atomic_store(&p->state, GONE);
    pthread_cond_destroy(&p->wake);
    return false;
}

/* Under the lock.  Signals belong to the program's own threads. */
static void add_workers(int wanted)
{
    sigset_t all, before;
    if (pool.workers >= wanted)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (struct place *p = pool.place; pool.workers < wanted && p < pool.place + PLACES; p++)
        if (!p->taken && state_of(p) == GONE) {
            if (!start_worker(p))
                break;
            pool.workers++;
        }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- fork ---- */

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
    pool.waiting = NULL;
    pool.workers = 0;
    for (int i = 0; i < PLACES; i++) {
        atomic_store(&pool.place[i].state, GONE);
        pool.place[i].taken = false;
    }
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

/* ---- callers ---- */

/* Under the lock: gives a free place the job's next segment. */
static void assign(struct job *job, struct place *p)
{
    const int k = ++job->assigned;
    const bool sleeps = state_of(p) == ASLEEP;
    job->place[k] = p;
    p->taken = true;
    p->task = job->task;
    p->denormals = job->denormals;
    p->stop = job->stop;
    p->job = job->several ? job : NULL;
    p->segment = k;
    next_piece(job, &job->segment[k], &p->begin, &p->end);
    atomic_store_explicit(&p->state, CALLED, memory_order_release);
    if (sleeps)
        pthread_cond_signal(&p->wake);
}

/* Under the lock: the same for all segments, as far as places last; spinning workers first. */
static void assign_free(struct job *job)
{
    static const int states[] = {READY, ASLEEP};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        for (struct place *p = pool.place; p < pool.place + PLACES; p++) {
            if (job->assigned == job->segments - 1)
                return;
            if (!p->taken && state_of(p) == states[i])
                assign(job, p);
        }
}

static void post(struct job *job)
{
    pthread_mutex_lock(&pool.lock);
    add_workers(job->segments - 1);
    assign_free(job);
    job->queued = job->assigned < job->segments - 1;
    if (job->queued) {
        job->after = pool.waiting;
        pool.waiting = job;
    }
    pthread_mutex_unlock(&pool.lock);
}

/* No further worker joins. */
static void leave_list(struct job *job)
{
    pthread_mutex_lock(&pool.lock);
    for (struct job **p = &pool.waiting; *p; p = &(*p)->after)
        if (*p == job) {
            *p = job->after;
            break;
        }
    pthread_mutex_unlock(&pool.lock);
}

/* Gives the places back, and to jobs that wait for some. */
static void release(const struct job *job)
{
    pthread_mutex_lock(&pool.lock);
    for (int k = 1; k <= job->assigned; k++)
        job->place[k]->taken = false;
    for (struct job *other = pool.waiting; other; other = other->after)
        assign_free(other);
    pthread_mutex_unlock(&pool.lock);
}

/* Under the lock: waits for an awaited piece.  Workers cannot ask whether to stop; so their caller does, now and then.
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

static void await_piece(struct place *p)
{
    for (int i = 0; i < SPINS; i++) {
        if (state_of(p) != BUSY)
            return;
        pause_briefly();
    }
    if (!change(p, BUSY, AWAITED))
        return;
    pthread_mutex_lock(&pool.lock);
    while (state_of(p) == AWAITED)
        wait_idle();
    pthread_mutex_unlock(&pool.lock);
}

/* Runs the pieces that workers have not started, and waits for the others. */
static void finish(struct job *job)
{
    if (job->queued)
        leave_list(job);
    for (int k = 1; k <= job->assigned; k++)
        if (state_of(job->place[k]) == CALLED && change(job->place[k], CALLED, READY))
            run_piece(job->place[k], 0);
    for (int k = 1; k <= job->assigned; k++)
        await_piece(job->place[k]);
    release(job);
}

static void run_parallel(size_t count, const struct task *task, int threads)
{
    if (threads <= 1 || count <= task->grain) { /* without a division */
        if (count)
            run_range(task, 0, 0, count);
        return;
    }
    const size_t grains = tq_divide_up(count, task->grain);
    threads = clamp_threads(threads);
    if ((size_t)threads > grains)
        threads = (int)grains;
    tq_threads_init();

    struct job job; /* its arrays are longer than most jobs need */
    job.task = *task;
    job.denormals = tq_denormals_mode();
    job.stop = tq_stop_helper().stop;
    job.count = count;
    job.segments = threads;
    job.assigned = 0;
    job.several = grains > (size_t)threads;
    size_t each = grains / (size_t)threads, extra = grains % (size_t)threads, at = 0;
    for (int i = 0; i < threads; i++) {
        size_t end = at + each + ((size_t)i < extra);
        atomic_init(&job.segment[i].next, at);
        job.segment[i].end = end;
        at = end;
    }
    job.piece = each / LEAST_PIECE + 1;
    post(&job);
    work(&job, 0);
    finish(&job);
}

bool tq_worker_spins(void)
{
    return atomic_load_explicit(&pool.place[0].state, memory_order_relaxed) == READY;
}

int tq_default_threads(void)
{
    const long wanted = tq_threads_wanted(getenv("TQ_NUM_THREADS"));
    return clamp_threads(wanted > 0 ? wanted : tq_processors());
}

#endif

void tq_parallel_for(size_t count, size_t grain, int threads, tq_range_fn body, void *context)
{
    struct plain plain = {body, context};
    run_parallel(count, &(struct task){run_plain, &plain, grain}, threads);
}

void tq_parallel_shares(size_t count, int threads, tq_share_fn body, void *context)
{
    run_parallel(count, &(struct task){body, context, 1}, threads);
}

int tq_threads_for(int wanted, size_t bytes, size_t bytes_a_thread)
{
    size_t paying = bytes / bytes_a_thread;
    if (wanted > 0 || paying <= 1)
        return wanted > 0 ? clamp_threads(wanted) : 1;
    int most = tq_default_threads();
    return paying < (size_t)most ? (int)paying : most;
}
