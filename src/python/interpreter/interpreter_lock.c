/* SPDX-License-Identifier: Apache-2.0 */
#include "python/interpreter/interpreter_lock.h"

#include "base/threads.h"
#include "python/free_threads.h"

enum { WAIT_MICROSECONDS = 50000 }; /* then the main thread looks for signals that another thread received */

int tq_py_lock_open(tq_py_lock *lock)
{
    lock->lock = PyThread_allocate_lock();
    lock->process = tq_forks();
    if (lock->lock)
        return 0;
    PyErr_NoMemory();
    return -1;
}

void tq_py_lock_close(tq_py_lock *lock)
{
    if (lock->lock)
        PyThread_free_lock(lock->lock);
}

/* No thread of this process can hold the lock before the first use here has looked. */
static void look_after_fork(tq_py_lock *lock, long process)
{
    if (lock->process == process)
        return;
    lock->is_lost = !PyThread_acquire_lock(lock->lock, NOWAIT_LOCK);
    if (!lock->is_lost)
        PyThread_release_lock(lock->lock);
    lock->process = process;
}

bool tq_py_lock_is_lost(PyObject *self, tq_py_lock *lock)
{
    const long process = tq_forks();
    (void)self;
    if (lock->process != process) {
        TQ_HOLD(self)
        look_after_fork(lock, process);
        TQ_LET_GO()
    }
    return lock->is_lost;
}

/* 0, or -1 with an exception. */
static int wait_for(tq_py_lock *lock)
{
    PyLockStatus status = PY_LOCK_FAILURE;
    while (status != PY_LOCK_ACQUIRED) {
        Py_BEGIN_ALLOW_THREADS
        status = PyThread_acquire_lock_timed(lock->lock, WAIT_MICROSECONDS, 1);
        Py_END_ALLOW_THREADS
        if (status != PY_LOCK_ACQUIRED && PyErr_CheckSignals() < 0)
            return -1;
    }
    return 0;
}

int tq_py_lock_take(PyObject *self, tq_py_lock *lock)
{
    const unsigned long me = PyThread_get_thread_ident();
    if (tq_py_lock_is_lost(self, lock)) {
        PyErr_SetString(
            PyExc_RuntimeError,
            "the interpreter was running in another thread of the parent when this process forked, and cannot "
            "be used here; make another of the same model, or fork while no interpreter runs");
        return -1;
    }
    if (lock->owner == me) {
        PyErr_SetString(PyExc_RuntimeError, "the interpreter is running: what it calls cannot use it");
        return -1;
    }
    if (!PyThread_acquire_lock(lock->lock, NOWAIT_LOCK) && wait_for(lock) < 0)
        return -1;
    atomic_store_explicit(&lock->owner, me, memory_order_relaxed);
    return 0;
}

void tq_py_lock_give(tq_py_lock *lock)
{
    if (lock->is_lost)
        lock->is_lost = false; /* its holder is here: an operator that forked */
    atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
    PyThread_release_lock(lock->lock);
}
