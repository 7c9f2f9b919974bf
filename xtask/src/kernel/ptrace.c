/*
 * Preloaded into linux.uml: lets it set the floating-point registers of its processes on a machine
 * whose register file is larger than it knows.
 *
 * Linux takes NT_X86_XSTATE whole or not at all (EFAULT), and UML 6.1 has room for 2,696 bytes,
 * which is AVX-512; with AMX it is 11,008 bytes, and the guest's first process dies. Here the rest
 * of the registers is read first and given back with what UML has set.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#define NT_X86_XSTATE 0x202
#define XSTATE_IN_USE_AT 512
#define AMX_COMPONENTS (3ULL << 17)

static long (*next)(int request, pid_t pid, void *address, void *data);

/* Not on the stack: UML's kernel stacks are small. One thread of UML traces. */
static unsigned char whole[64 * 1024];

__attribute__((constructor)) static void find_next(void) {
    next = (long (*)(int, pid_t, void *, void *))dlsym(RTLD_NEXT, "ptrace");
}

static long set_whole(int request, pid_t pid, void *address, const struct iovec *part) {
    struct iovec all = {.iov_base = whole, .iov_len = sizeof whole};
    uint64_t in_use;
    if (next(PTRACE_GETREGSET, pid, address, &all) < 0)
        return -1;
    if (part->iov_len >= all.iov_len || part->iov_len < XSTATE_IN_USE_AT + sizeof in_use) {
        errno = EFAULT;
        return -1;
    }
    memcpy(whole, part->iov_base, part->iov_len);
    memcpy(&in_use, whole + XSTATE_IN_USE_AT, sizeof in_use);
    in_use &= ~AMX_COMPONENTS;
    memcpy(whole + XSTATE_IN_USE_AT, &in_use, sizeof in_use);
    return next(request, pid, address, &all);
}

long ptrace(enum __ptrace_request request, ...) {
    va_list rest;
    va_start(rest, request);
    pid_t pid = va_arg(rest, pid_t);
    void *address = va_arg(rest, void *);
    void *data = va_arg(rest, void *);
    va_end(rest);
    long result = next(request, pid, address, data);
    if (result < 0 && errno == EFAULT && request == PTRACE_SETREGSET &&
        (uintptr_t)address == NT_X86_XSTATE)
        result = set_whole(request, pid, address, data);
    return result;
}
