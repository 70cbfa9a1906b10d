/* SPDX-License-Identifier: Apache-2.0
 *
 * The locks that take the GIL's place in a Python without one.
 *
 * Where objects change, methods hold their object (TQ_HOLD, a critical section of CPython): as with the GIL, one thread
 * at a time runs, and the object is let go while the method waits or has detached its thread, as for long work.  What
 * is made once, when it is first asked for, is published with tq_py_publish.  With a GIL both cost nothing.
 */
#ifndef TQ_PYTHON_FREE_THREADS_H
#define TQ_PYTHON_FREE_THREADS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>

/* TQ_HOLD(object) ... TQ_LET_GO(): a block, which is not left in between.  TQ_LOCK, TQ_UNLOCK: a mutex, for what calls
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

/* The function held_<name>, which calls `name` while it holds `object`. */
#define TQ_HELD(object, name, parameters, arguments) \
    static PyObject *held_##name parameters          \
    {                                                \
        PyObject *result;                            \
        TQ_HOLD(object)                              \
        result = name arguments;                     \
        TQ_LET_GO()                                  \
        return result;                               \
    }

/* An object that is made when it is first asked for, and stays; NULL until then. */
typedef _Atomic(PyObject *) tq_py_lazy;

/* Gives `made`, a new reference, to an empty place; where another thread was faster, its object stands and `made` goes.
   Returns the object that stands, borrowed; NULL, and the place stays empty, where `made` is NULL. */
static inline PyObject *tq_py_publish(tq_py_lazy *place, PyObject *made)
{
    PyObject *there = NULL;
    if (!made || atomic_compare_exchange_strong(place, &there, made))
        return made;
    Py_DECREF(made);
    return there;
}

static inline void tq_py_retract(tq_py_lazy *place)
{
    Py_XDECREF(atomic_exchange(place, NULL));
}

#endif
