// Else the headers show less than there is.
#define _GNU_SOURCE

#include "MemoryShims.h"

#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static int unmap(struct dl_phdr_info *object, size_t size, void *page) {
    uintptr_t mask = ~(*(uintptr_t *)page - 1);
    for (int index = 0; index < object->dlpi_phnum; index++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[index];
        if (segment->p_type != PT_LOAD || segment->p_flags & PF_W) continue;
        uintptr_t start = (object->dlpi_addr + segment->p_vaddr) & mask;
        uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_filesz;
        madvise((void *)start, end - start, MADV_DONTNEED);
    }
    return 0;
}

void shim_unmap_programs(void) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    dl_iterate_phdr(unmap, &page);
}
