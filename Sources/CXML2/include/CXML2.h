// libxml2, without being linked with it. Its headers include each other as <libxml/…>, and only pkg-config, which also
// names the library to the linker, would say where that is: the link beside this file does instead.
#pragma once

// Swift reads this as a module: the system headers included here belong to the Glibc module, and are not taken for
// ours. load.c is plain C.
#if __has_feature(modules)
#pragma clang module import SwiftGlibc
#endif

#if !__has_include(<libxml/xmlversion.h>)
#error "libxml2's headers are missing in /usr/include/libxml2 (Debian package libxml2-dev)"
#endif

// Debian's libxml2 is built with ICU, whose headers clash with those of Foundation's ICU; only two private fields of
// a type that is used by pointer need them.
#include <libxml/xmlversion.h>
#undef LIBXML_ICU_ENABLED

#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <libxml/SAX2.h>
#include <libxml/xmlerror.h>
#include <stdbool.h>

// The shared object that these headers describe. With it comes ICU, 33 MB of it; few processes need either: it is
// loaded when the first document is to be judged.
#if LIBXML_VERSION < 21400
#define SHIM_XML_FILE "libxml2.so.2"
#elif LIBXML_VERSION < 30000
#define SHIM_XML_FILE "libxml2.so.16"
#else
#error "name the shared object of this version of libxml2"
#endif

// What is used of it, with the types that the headers say.
struct shim_xml {
    __typeof__(xmlInitParser) *initParser;
    __typeof__(xmlCreateIOParserCtxt) *createIOParserCtxt;
    __typeof__(xmlFreeParserCtxt) *freeParserCtxt;
    __typeof__(xmlFreeDoc) *freeDoc;
    __typeof__(xmlCtxtUseOptions) *ctxtUseOptions;
    __typeof__(xmlParseDocument) *parseDocument;
    __typeof__(xmlStopParser) *stopParser;
    __typeof__(xmlSAX2GetEntity) *sax2GetEntity;
    __typeof__(xmlSAX2GetParameterEntity) *sax2GetParameterEntity;
    __typeof__(__xmlStructuredError) *structuredError;
    __typeof__(__xmlStructuredErrorContext) *structuredErrorContext;
    __typeof__(xmlSetStructuredErrorFunc) *setStructuredErrorFunc;
};

// False if the library has not all of them.
bool shim_xml_load(void *library, struct shim_xml *functions);
