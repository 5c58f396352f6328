#include "CXML2.h"

#include <dlfcn.h>
#include <stddef.h>

#define SHIM_XML_LOAD(field, name) \
    (functions->field = (__typeof__(functions->field))dlsym(library, name)) != NULL

bool shim_xml_load(void *library, struct shim_xml *functions) {
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
