// The system headers included here belong to the Glibc module: imported first, they are not taken for ours.
#pragma clang module import SwiftGlibc

// Debian's libxml2 is built with ICU. Its headers clash with those of Foundation's ICU, and only two private fields of
// a type that is used by pointer need them.
#include <libxml/xmlversion.h>
#undef LIBXML_ICU_ENABLED

#include <dlfcn.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <libxml/SAX2.h>
#include <libxml/xmlerror.h>
#include <stdbool.h>

// The shared object that these headers describe. It is loaded when the first document is validated: it brings 33 MB of
// ICU, and few processes need either.
#if LIBXML_VERSION < 21400
#define SHIM_XML_FILE "libxml2.so.2"
#elif LIBXML_VERSION < 30000
#define SHIM_XML_FILE "libxml2.so.16"
#else
#error "name the shared object of this version of libxml2"
#endif

// The functions in use, with their types from the headers.
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

#define SHIM_XML_LOAD(field, name) \
    (functions->field = (__typeof__(functions->field))dlsym(library, name)) != NULL

// False if the library has not all of them.
static inline bool shim_xml_load(void *library, struct shim_xml *functions) {
    return SHIM_XML_LOAD(initParser, "xmlInitParser")
        && SHIM_XML_LOAD(createIOParserCtxt, "xmlCreateIOParserCtxt")
        && SHIM_XML_LOAD(freeParserCtxt, "xmlFreeParserCtxt")
        && SHIM_XML_LOAD(freeDoc, "xmlFreeDoc")
        && SHIM_XML_LOAD(ctxtUseOptions, "xmlCtxtUseOptions")
        && SHIM_XML_LOAD(parseDocument, "xmlParseDocument")
        && SHIM_XML_LOAD(stopParser, "xmlStopParser")
        && SHIM_XML_LOAD(sax2GetEntity, "xmlSAX2GetEntity")
        && SHIM_XML_LOAD(sax2GetParameterEntity, "xmlSAX2GetParameterEntity")
        && SHIM_XML_LOAD(structuredError, "__xmlStructuredError")
        && SHIM_XML_LOAD(structuredErrorContext, "__xmlStructuredErrorContext")
        && SHIM_XML_LOAD(setStructuredErrorFunc, "xmlSetStructuredErrorFunc");
}
