/* SPDX-License-Identifier: Apache-2.0
 *
 * Locks for a Python without a GIL.
 *
 * Methods of objects that change hold their object (TQ_HOLD, a critical section of CPython): one thread at a time runs,
 * and CPython releases the object while the method waits or has detached its thread.  Objects that are made at their
 * first use are published with tq_py_publish.  With a GIL neither costs anything.
 */
#ifndef TQ_PYTHON_FREE_THREADS_H
#define TQ_PYTHON_FREE_THREADS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>

/* TQ_HOLD(object) ... TQ_LET_GO(): a block without return or jump.  TQ_LOCK, TQ_UNLOCK: a mutex, around code that calls
   no Python. */
#ifdef Py_GIL_DISABLED
#define TQ_HOLD(object) Py_BEGIN_CRITICAL_SECTION(object);
#define TQ_LET_GO() Py_END_CRITICAL_SECTION();
typedef PyMutex tq_py_mutex;
#define TQ_LOCK(mutex) PyMutex_Lock(mutex)
#define TQ_UNLOCK(mutex) PyMutex_Unlock(mutex)
#else
#define TQ_HOLD(object) {
#define TQ_LET_GO() }
typedef char tq_py_mutex;
#define TQ_LOCK(mutex) (void)(mutex)
#define TQ_UNLOCK(mutex) (void)(mutex)
#endif

/* Defines held_<name>, which calls `name` while it holds `object`. */
#define TQ_HELD(object, name, parameters, arguments) \
    static PyObject *held_##name parameters          \
    {                                                \
        PyObject *result;                            \
        TQ_HOLD(object)                              \
        result = name arguments;                     \
        TQ_LET_GO()                                  \
        return result;                               \
    }

/* An object that is made at its first use and never replaced; NULL until then. */
typedef _Atomic(PyObject *) tq_py_lazy;

/* Stores `made`, a new reference, in an empty slot; if another thread was faster, releases `made` and leaves its
   object. Returns the slot's object, borrowed.  made NULL: returns NULL, and the slot stays empty. */
static inline PyObject *tq_py_publish(tq_py_lazy *slot, PyObject *made)
{
    PyObject *there = NULL;
    if (!made || atomic_compare_exchange_strong(slot, &there, made))
        return made;
    Py_DECREF(made);
    return there;
}

static inline void tq_py_retract(tq_py_lazy *slot)
{
    Py_XDECREF(atomic_exchange(slot, NULL));
}

#endif
