/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread at a time works with an interpreter; others wait, and hear Ctrl-C meanwhile.
 *
 * fork() copies a lock that a thread of the parent holds, but not that thread: in the child the lock is lost.  The
 * interpreter was in the middle of its work, so the child may not use it.
 *
 * Calls of a few hundred nanoseconds take it and give it back: it is a field that the GIL guards (in a Python without
 * one a critical section of the object), and only waiting threads use a semaphore.
 */
#ifndef TQ_PYTHON_INTERPRETER_INTERPRETER_LOCK_H
#define TQ_PYTHON_INTERPRETER_INTERPRETER_LOCK_H

#include "python/state.h"

#include <stdbool.h>

typedef struct tq_py_lock {
    PyThread_type_lock wake; /* waiting threads sleep on it; locked, but for one of them to wake (is_awake) */
    bool is_awake;           /* `wake` is released, and no thread has acquired it yet */
    bool is_taken;
    unsigned long owner;     /* the thread that has taken it */
    long waiting;            /* threads */
    long process;            /* the process whose first use has checked whether the lock is lost (tq_forks) */
    bool is_lost;
} tq_py_lock;

/* 0, or -1 with MemoryError. */
int tq_py_lock_open(tq_py_lock *lock);
void tq_py_lock_close(tq_py_lock *lock);

/* Takes the lock of the object `self`.  0, or -1 with an exception: RuntimeError if this thread holds the lock already,
   or a thread of the parent held it at the fork; or the exception of a signal's handler. */
int tq_py_lock_take(PyObject *self, tq_py_lock *lock);
void tq_py_lock_give(PyObject *self, tq_py_lock *lock);

/* Whether a thread of the parent held the lock at the fork. */
bool tq_py_lock_is_lost(PyObject *self, tq_py_lock *lock);

#endif
