/* Bytes of values as a logical hash takes them; `odfpy.data.slices.packing` has the same in numpy and Arrow.
 *
 * Buffers come from files and processes that are not trusted: all sizes and bounds are checked before they are used.
 * The GIL is released while bytes are copied.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* Raised with every change of a signature: a module that was built from an older file is then not used. */
#define VERSION 1

/* Short values are copied as a block of this size, so results have as many bytes of room behind their end. */
#define BLOCK 32
#define PREFIX 8

static inline int bit_at(const uint8_t *bits, Py_ssize_t at)
{
    return bits[at >> 3] >> (at & 7) & 1;
}

static inline int is_valid(const uint8_t *validity, Py_ssize_t at)
{
    return validity == NULL || bit_at(validity, at);
}

static int has_bits(const Py_buffer *bits, Py_ssize_t offset, Py_ssize_t length)
{
    const int is_none = bits->obj == NULL;

    if (is_none || (offset >= 0 && length >= 0 && offset <= PY_SSIZE_T_MAX - length - 7
                    && (offset + length + 7) / 8 <= bits->len))
        return 1;
    PyErr_SetString(PyExc_ValueError, "a bitmap is shorter than its values");
    return 0;
}

/* A new bytes object with room for a block behind its size. */
static PyObject *new_bytes(Py_ssize_t size)
{
    if (size > PY_SSIZE_T_MAX - 2 * BLOCK)
        return PyErr_NoMemory();
    return PyBytes_FromStringAndSize(NULL, size + BLOCK);
}

static PyObject *cut_to(PyObject *bytes, const uint8_t *end)
{
    _PyBytes_Resize(&bytes, end - (const uint8_t *)PyBytes_AS_STRING(bytes));
    return bytes;
}

/* Eight bits from a place on, all of which are there. */
static inline unsigned eight_bits(const uint8_t *bits, Py_ssize_t at)
{
    const unsigned from = at & 7;

    bits += at >> 3;
    return from == 0 ? bits[0] : (bits[0] >> from | (unsigned)bits[1] << (8 - from)) & 0xFF;
}

/* For each byte, its bits as eight bytes, and the number of ones before each bit; the last is that of all ones. */
static uint64_t spread[256];
static uint8_t ones_before[256][9];

static void fill_tables(void)
{
    for (int bits = 0; bits < 256; bits++) {
        uint8_t eight[8];
        for (int at = 0; at < 8; at++) {
            eight[at] = bits >> at & 1;
            ones_before[bits][at + 1] = ones_before[bits][at] + eight[at];
        }
        memcpy(&spread[bits], eight, 8);
    }
}

/* Values of one width; of a null, the first byte is 0, and the only one that counts. There are no branches by validity,
 * which are slow where nulls cannot be predicted. */
#define COPY_WORD(TYPE, IS_VALUE, AT, TO)                                     \
    do {                                                                      \
        TYPE word;                                                            \
        memcpy(&word, values + (AT) * sizeof(TYPE), sizeof(TYPE));            \
        word &= (TYPE)(0 - (TYPE)(IS_VALUE));                                 \
        memcpy((TO), &word, sizeof(TYPE));                                    \
    } while (0)

#define COPY_WORDS(TYPE)                                                      \
    for (; at + 8 <= length; at += 8) {                                       \
        const unsigned valid = eight_bits(validity, offset + at);             \
        if (valid == 0xFF)                                                    \
            memcpy(out, values + at * sizeof(TYPE), 8 * sizeof(TYPE));        \
        else                                                                  \
            for (int row = 0; row < 8; row++)                                 \
                COPY_WORD(TYPE, valid >> row & 1, at + row,                   \
                          out + row + ones_before[valid][row] * (sizeof(TYPE) - 1)); \
        out += 8 + ones_before[valid][8] * (sizeof(TYPE) - 1);                \
    }                                                                         \
    for (; at < length; at++) {                                               \
        const int is_value = bit_at(validity, offset + at);                   \
        COPY_WORD(TYPE, is_value, at, out);                                   \
        out += 1 + is_value * (sizeof(TYPE) - 1);                             \
    }

#define COPY_FIXED(WIDTH)                                                     \
    for (; at < length; at++) {                                               \
        if (bit_at(validity, offset + at)) {                                  \
            memcpy(out, values + at * (WIDTH), (WIDTH));                      \
            out += (WIDTH);                                                   \
        }                                                                     \
        else                                                                  \
            *out++ = 0;                                                       \
    }

static uint8_t *copy_fixed(uint8_t *out, const uint8_t *values, const uint8_t *validity, Py_ssize_t offset,
                           Py_ssize_t length, Py_ssize_t width)
{
    Py_ssize_t at = 0;

    switch (width) {
    case 1:
        COPY_WORDS(uint8_t)
        break;
    case 2:
        COPY_WORDS(uint16_t)
        break;
    case 4:
        COPY_WORDS(uint32_t)
        break;
    case 8:
        COPY_WORDS(uint64_t)
        break;
    case 16:
        COPY_FIXED(16)
        break;
    default:
        COPY_FIXED(width)
    }
    return out;
}

PyDoc_STRVAR(fixed_width_doc, "fixed_width(values, validity, offset, length, width)\n--\n\n"
                              "Return values of one width; one byte 0 for each null.");

static PyObject *fixed_width(PyObject *self, PyObject *arguments)
{
    Py_buffer values, validity;
    Py_ssize_t offset, length, width;
    PyObject *result = NULL;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "y*y*nnn", &values, &validity, &offset, &length, &width))
        return NULL;
    if (width < 1 || length < 0 || length > PY_SSIZE_T_MAX / width || values.len != length * width)
        PyErr_SetString(PyExc_ValueError, "values have another length");
    else if (has_bits(&validity, offset, length) && (result = new_bytes(values.len)) != NULL) {
        uint8_t *out = (uint8_t *)PyBytes_AS_STRING(result);
        Py_BEGIN_ALLOW_THREADS
        out = copy_fixed(out, values.buf, validity.buf, offset, length, width);
        Py_END_ALLOW_THREADS
        result = cut_to(result, out);
    }
    PyBuffer_Release(&values);
    PyBuffer_Release(&validity);
    return result;
}

PyDoc_STRVAR(booleans_doc, "booleans(values, validity, offset, length)\n--\n\n"
                           "Return 0 for null, 1 for false, 2 for true; `validity` may be None.");

static PyObject *booleans(PyObject *self, PyObject *arguments)
{
    Py_buffer values, validity;
    Py_ssize_t offset, length;
    PyObject *result = NULL;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "y*z*nn", &values, &validity, &offset, &length))
        return NULL;
    if (length < 0)
        PyErr_SetString(PyExc_ValueError, "values have another length");
    else if (has_bits(&values, offset, length) && has_bits(&validity, offset, length)
             && (result = PyBytes_FromStringAndSize(NULL, length)) != NULL) {
        const uint8_t *bits = values.buf, *valid = validity.buf;
        uint8_t *out = (uint8_t *)PyBytes_AS_STRING(result);
        Py_ssize_t at = 0;
        Py_BEGIN_ALLOW_THREADS
        for (; at + 8 <= length; at += 8) {
            const unsigned has_value = valid == NULL ? 0xFF : eight_bits(valid, offset + at);
            const uint64_t eight = spread[has_value] + spread[has_value & eight_bits(bits, offset + at)];
            memcpy(out + at, &eight, 8);
        }
        for (; at < length; at++) {
            const int has_value = is_valid(valid, offset + at);
            out[at] = (uint8_t)(has_value + (has_value & bit_at(bits, offset + at)));
        }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&values);
    if (validity.obj != NULL)
        PyBuffer_Release(&validity);
    return result;
}

static int has_numbers(const Py_buffer *numbers)
{
    return numbers->itemsize == 4 || numbers->itemsize == 8;
}

static inline int64_t number_at(const Py_buffer *numbers, Py_ssize_t at)
{
    const char *from = (const char *)numbers->buf + at * numbers->itemsize;
    int32_t small;
    int64_t large;

    if (numbers->itemsize == 4) {
        memcpy(&small, from, 4);
        return small;
    }
    memcpy(&large, from, 8);
    return large;
}

/* Return the end of what was written, NULL if the bounds are out of order. The first and the last are in range. */
static inline uint8_t *copy_prefixed(uint8_t *out, const Py_buffer *data, const Py_buffer *bounds,
                                     const Py_buffer *rows, const uint8_t *validity, Py_ssize_t offset,
                                     Py_ssize_t length)
{
    const int64_t last = number_at(bounds, length);
    int64_t begin = number_at(bounds, 0), first = number_at(rows, 0);

    for (Py_ssize_t at = 0; at < length; at++) {
        const int64_t end = number_at(bounds, at + 1), next = number_at(rows, at + 1);
        const uint64_t count = (uint64_t)next - (uint64_t)first;
        const uint8_t *from = (const uint8_t *)data->buf + begin;

        if (end < begin || end > last || next < first)
            return NULL;
        if (!is_valid(validity, offset + at))
            *out++ = 0;
        else {
            memcpy(out, &count, PREFIX);
            out += PREFIX;
            if (end - begin <= BLOCK && data->len - begin >= BLOCK)
                memcpy(out, from, BLOCK);
            else
                memcpy(out, from, end - begin);
            out += end - begin;
        }
        begin = end;
        first = next;
    }
    return out;
}

PyDoc_STRVAR(prefixed_doc, "prefixed(data, bounds, rows, validity, offset)\n--\n\n"
                           "Return the parts of data between bounds, each after its count of rows as u64; one byte 0 for\n"
                           "each null. `bounds` and `rows` are int32 or int64, one more than values; `validity` may be None.");

static PyObject *prefixed(PyObject *self, PyObject *arguments)
{
    Py_buffer data, bounds, rows, validity;
    Py_ssize_t offset, length = -1;
    PyObject *result = NULL;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "y*y*y*z*n", &data, &bounds, &rows, &validity, &offset))
        return NULL;
    if (has_numbers(&bounds) && has_numbers(&rows) && bounds.len / bounds.itemsize == rows.len / rows.itemsize)
        length = bounds.len / bounds.itemsize - 1;
    if (length < 0)
        PyErr_SetString(PyExc_ValueError, "bounds and rows have other lengths or types");
    else if (length > (PY_SSIZE_T_MAX - data.len) / PREFIX - 1)
        PyErr_NoMemory();
    else if (has_bits(&validity, offset, length)) {
        const int64_t begin = number_at(&bounds, 0), end = number_at(&bounds, length);
        if (begin < 0 || end < begin || end > data.len)
            PyErr_SetString(PyExc_ValueError, "bounds are out of range");
        else if ((result = new_bytes(length * PREFIX + (end - begin))) != NULL) {
            uint8_t *out = (uint8_t *)PyBytes_AS_STRING(result);
            Py_BEGIN_ALLOW_THREADS
            out = copy_prefixed(out, &data, &bounds, &rows, validity.buf, offset, length);
            Py_END_ALLOW_THREADS
            if (out == NULL) {
                Py_CLEAR(result);
                PyErr_SetString(PyExc_ValueError, "bounds are out of order");
            }
            else
                result = cut_to(result, out);
        }
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&bounds);
    PyBuffer_Release(&rows);
    if (validity.obj != NULL)
        PyBuffer_Release(&validity);
    return result;
}

static PyMethodDef methods[] = {
    {"fixed_width", fixed_width, METH_VARARGS, fixed_width_doc},
    {"booleans", booleans, METH_VARARGS, booleans_doc},
    {"prefixed", prefixed, METH_VARARGS, prefixed_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_packing", "Bytes of values, as a logical hash takes them.", 0, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__packing(void)
{
    PyObject *made = PyModule_Create(&module);

    fill_tables();
    if (made != NULL && PyModule_AddIntConstant(made, "VERSION", VERSION) < 0)
        Py_CLEAR(made);
    return made;
}
