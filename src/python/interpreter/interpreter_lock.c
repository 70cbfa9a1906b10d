/* SPDX-License-Identifier: Apache-2.0 */
#include "python/interpreter/interpreter_lock.h"

#include "base/threads.h"
#include "python/free_threads.h"

enum { WAIT_MICROSECONDS = 50000 }; /* then the main thread checks for signals that another thread received */

int tq_py_lock_open(tq_py_lock *lock)
{
    lock->wake = PyThread_allocate_lock();
    lock->process = tq_forks();
    if (lock->wake) {
        PyThread_acquire_lock(lock->wake, NOWAIT_LOCK);
        return 0;
    }
    PyErr_NoMemory();
    return -1;
}

void tq_py_lock_close(tq_py_lock *lock)
{
    if (!lock->wake)
        return;
    if (!lock->is_awake)
        PyThread_release_lock(lock->wake);
    PyThread_free_lock(lock->wake);
}

/* Runs at the first use in a process.  The parent's waiting threads are gone, and may have left `wake` released. */
static void look_after_fork(tq_py_lock *lock, long process)
{
    if (lock->process == process)
        return;
    lock->is_lost = lock->is_taken;
    PyThread_acquire_lock(lock->wake, NOWAIT_LOCK);
    lock->is_awake = false;
    lock->waiting = 0;
    lock->process = process;
}

bool tq_py_lock_is_lost(PyObject *self, tq_py_lock *lock)
{
    bool is_lost;
    (void)self;
    TQ_HOLD(self)
    look_after_fork(lock, tq_forks());
    is_lost = lock->is_lost;
    TQ_LET_GO()
    return is_lost;
}

/* ---- taking ---- */

enum outcome { TAKEN, HELD, HELD_BY_CALLER, LOST };

/* Takes the lock where it is free; otherwise the caller waits for it, and is counted. */
static enum outcome try_take(PyObject *self, tq_py_lock *lock)
{
    const unsigned long me = PyThread_get_thread_ident();
    enum outcome outcome = TAKEN;
    (void)self;
    TQ_HOLD(self)
    look_after_fork(lock, tq_forks());
    if (lock->is_lost)
        outcome = LOST;
    else if (lock->is_taken)
        outcome = lock->owner == me ? HELD_BY_CALLER : HELD;
    else {
        lock->is_taken = true;
        lock->owner = me;
    }
    lock->waiting += outcome == HELD;
    TQ_LET_GO()
    return outcome;
}

/* Until the lock may be free, or WAIT_MICROSECONDS. */
static void wait_for(PyObject *self, tq_py_lock *lock)
{
    PyLockStatus status;
    (void)self;
    Py_BEGIN_ALLOW_THREADS
    status = PyThread_acquire_lock_timed(lock->wake, WAIT_MICROSECONDS, 1);
    Py_END_ALLOW_THREADS
    TQ_HOLD(self)
    lock->waiting--;
    if (status == PY_LOCK_ACQUIRED)
        lock->is_awake = false;
    TQ_LET_GO()
}

int tq_py_lock_take(PyObject *self, tq_py_lock *lock)
{
    enum outcome outcome;
    while ((outcome = try_take(self, lock)) == HELD) {
        wait_for(self, lock);
        if (PyErr_CheckSignals() < 0)
            return -1;
    }
    if (outcome == TAKEN)
        return 0;
    PyErr_SetString(PyExc_RuntimeError,
                    outcome == LOST
                        ? "the interpreter was running in another thread of the parent when this process forked, and "
                          "cannot be used here; make another of the same model, or fork while no interpreter runs"
                        : "the interpreter is running: what it calls cannot use it");
    return -1;
}

void tq_py_lock_give(PyObject *self, tq_py_lock *lock)
{
    (void)self;
    TQ_HOLD(self)
    lock->is_lost = false; /* its holder is this thread: an operator that forked */
    lock->is_taken = false;
    if (lock->waiting && !lock->is_awake) {
        lock->is_awake = true;
        PyThread_release_lock(lock->wake);
    }
    TQ_LET_GO()
}
