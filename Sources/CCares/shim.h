// The system headers that c-ares includes belong to the Glibc module: imported first, they aren't taken for ours.
#pragma clang module import SwiftGlibc

// The deprecated functions are used because their successors came after 1.18.
#define CARES_NO_DEPRECATED
#include <ares.h>
#include <string.h>

// Numbers in c-ares 1.18 (Debian 12), an enumeration in 1.34 (Debian 13): the functions return an int in both.
static const int shim_ARES_SUCCESS = ARES_SUCCESS;
static const int shim_ARES_ENODATA = ARES_ENODATA;
static const int shim_ARES_ENOTFOUND = ARES_ENOTFOUND;
static const int shim_ARES_EBADNAME = ARES_EBADNAME;
static const int shim_ARES_ECONNREFUSED = ARES_ECONNREFUSED;
static const int shim_ARES_ETIMEOUT = ARES_ETIMEOUT;
static const int shim_ARES_EDESTRUCTION = ARES_EDESTRUCTION;
static const int shim_ARES_ECANCELLED = ARES_ECANCELLED;

// The options of a channel. A later library than that of the headers knows more of them, at the end: it has room here.
union shim_ares_options {
    struct ares_options known;
    char room[4096];
};

// ares_init_options() without the cache of answers that c-ares has since 1.31, with its own rules (qcache_max_ttl,
// which is 0 in what Swift has initialised). The resolver has one.
static inline int shim_ares_init_options(ares_channel *channel, union shim_ares_options *options, int mask) {
    int version = 0;
    ares_version(&version);
    const int ARES_OPT_QUERY_CACHE_1_31 = 1 << 21;
    return ares_init_options(channel, &options->known, version >= 0x011f00 ? mask | ARES_OPT_QUERY_CACHE_1_31 : mask);
}
static inline int shim_ares_save_options(ares_channel channel, union shim_ares_options *options) {
    int mask = 0;
    memset(options, 0, sizeof *options);
    return ares_save_options(channel, &options->known, &mask);
}
static inline void shim_ares_destroy_options(union shim_ares_options *options) {
    ares_destroy_options(&options->known);
}
