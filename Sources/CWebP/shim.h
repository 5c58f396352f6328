// The system headers included here belong to the Glibc module: imported first, they are not taken for ours.
#pragma clang module import SwiftGlibc

#if !__has_include(<webp/demux.h>)
#error "webp/demux.h is missing (Debian package libwebp-dev)"
#endif

#include <dlfcn.h>
#include <stdbool.h>
#include <webp/decode.h>
#include <webp/demux.h>

// The shared object that these headers describe: loaded when the first image is to be decoded. It needs libwebp itself,
// whose functions are found through it.
#if WEBP_DEMUX_ABI_VERSION >> 8 == 1 && WEBP_DECODER_ABI_VERSION >> 8 == 2
#define SHIM_WEBP_FILE "libwebpdemux.so.2"
#else
#error "name the shared object of this version of libwebp"
#endif

// What is used of it, with the types that the headers say.
struct shim_webp {
    __typeof__(WebPDemuxInternal) *demuxInternal;
    __typeof__(WebPDemuxDelete) *demuxDelete;
    __typeof__(WebPDemuxGetI) *demuxGetI;
    __typeof__(WebPDemuxGetFrame) *demuxGetFrame;
    __typeof__(WebPDemuxNextFrame) *demuxNextFrame;
    __typeof__(WebPDemuxReleaseIterator) *demuxReleaseIterator;
    __typeof__(WebPInitDecoderConfigInternal) *initDecoderConfigInternal;
    __typeof__(WebPGetFeaturesInternal) *getFeaturesInternal;
    __typeof__(WebPDecode) *decode;
    __typeof__(WebPFreeDecBuffer) *freeDecBuffer;
};

#define SHIM_WEBP_LOAD(field, name) \
    (functions->field = (__typeof__(functions->field))dlsym(library, name)) != NULL

// False if the library has not all of them.
static inline bool shim_webp_load(void *library, struct shim_webp *functions) {
    return SHIM_WEBP_LOAD(demuxInternal, "WebPDemuxInternal")
        && SHIM_WEBP_LOAD(demuxDelete, "WebPDemuxDelete")
        && SHIM_WEBP_LOAD(demuxGetI, "WebPDemuxGetI")
        && SHIM_WEBP_LOAD(demuxGetFrame, "WebPDemuxGetFrame")
        && SHIM_WEBP_LOAD(demuxNextFrame, "WebPDemuxNextFrame")
        && SHIM_WEBP_LOAD(demuxReleaseIterator, "WebPDemuxReleaseIterator")
        && SHIM_WEBP_LOAD(initDecoderConfigInternal, "WebPInitDecoderConfigInternal")
        && SHIM_WEBP_LOAD(getFeaturesInternal, "WebPGetFeaturesInternal")
        && SHIM_WEBP_LOAD(decode, "WebPDecode")
        && SHIM_WEBP_LOAD(freeDecBuffer, "WebPFreeDecBuffer");
}

// The headers' inline functions, which hand over the version of the interface.
static inline WebPDemuxer *shim_webp_demux(const struct shim_webp *functions, const WebPData *data) {
    return functions->demuxInternal(data, 0, NULL, WEBP_DEMUX_ABI_VERSION);
}

static inline int shim_webp_init(const struct shim_webp *functions, WebPDecoderConfig *config) {
    return functions->initDecoderConfigInternal(config, WEBP_DECODER_ABI_VERSION);
}

static inline VP8StatusCode shim_webp_features(
    const struct shim_webp *functions, const uint8_t *data, size_t size, WebPBitstreamFeatures *features) {
    return functions->getFeaturesInternal(data, size, features, WEBP_DECODER_ABI_VERSION);
}
