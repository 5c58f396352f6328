// OpenSSL's macros as functions and constants, for the TLS module and the test authority. No logic.
#pragma once

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

static const uint64_t shim_SSL_OP_NO_RENEGOTIATION = SSL_OP_NO_RENEGOTIATION;
static const uint64_t shim_SSL_OP_NO_COMPRESSION = SSL_OP_NO_COMPRESSION;
// SSL_OP_NO_TX_CERTIFICATE_COMPRESSION and SSL_OP_NO_RX_CERTIFICATE_COMPRESSION of OpenSSL 3.2. By their numbers, since
// a program compiled with the headers of 3.0, where they mean nothing, may run with a later library.
static const uint64_t shim_SSL_OP_NO_CERTIFICATE_COMPRESSION = (uint64_t)3 << 32;
static const uint64_t shim_SSL_OP_CIPHER_SERVER_PREFERENCE = SSL_OP_CIPHER_SERVER_PREFERENCE;

static const int shim_ERR_R_UNSUPPORTED = ERR_R_UNSUPPORTED;

static const unsigned long shim_XN_FLAG_RFC2253 = XN_FLAG_RFC2253;

static inline int shim_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}
static inline int shim_SSL_CTX_set_max_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_max_proto_version(context, version);
}
static inline int shim_SSL_CTX_set1_groups_list(SSL_CTX *context, const char *list) {
    return (int)SSL_CTX_set1_groups_list(context, list);
}
// The TLS registry's name of the negotiated group; NULL before. SSL_get0_group_name is of OpenSSL 3.2.
static inline const char *shim_SSL_group_name(SSL *connection) {
    long group = SSL_get_negotiated_group(connection);
    return group > 0 ? SSL_group_to_name(connection, (int)group) : NULL;
}
static inline int shim_SSL_CTX_set1_sigalgs_list(SSL_CTX *context, const char *list) {
    return (int)SSL_CTX_set1_sigalgs_list(context, list);
}
static inline void shim_SSL_CTX_set_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_mode(context, mode);
}
static inline void shim_SSL_CTX_set_read_ahead(SSL_CTX *context, int yes) {
    SSL_CTX_set_read_ahead(context, yes);
}
static inline void shim_SSL_CTX_set_session_cache_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_session_cache_mode(context, mode);
}
static inline int shim_SSL_CTX_set_ticket_key_callback(
    SSL_CTX *context,
    int (*callback)(SSL *, unsigned char *, unsigned char *, EVP_CIPHER_CTX *, EVP_MAC_CTX *, int)) {
    return (int)SSL_CTX_set_tlsext_ticket_key_evp_cb(context, callback);
}
static inline int shim_SSL_set_server_name(SSL *connection, const char *name) {
    return (int)SSL_set_tlsext_host_name(connection, name);
}
static inline int shim_SSL_CTX_set_status_callback(SSL_CTX *context, int (*callback)(SSL *, void *)) {
    return (int)SSL_CTX_set_tlsext_status_cb(context, callback);
}
static inline int shim_SSL_CTX_request_status(SSL_CTX *context) {
    return (int)SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp);
}
static inline long shim_SSL_get_status_response(SSL *connection, const unsigned char **bytes) {
    return SSL_get_tlsext_status_ocsp_resp(connection, bytes);
}
static inline int shim_SSL_CTX_set_status_argument(SSL_CTX *context, void *argument) {
    return (int)SSL_CTX_set_tlsext_status_arg(context, argument);
}
// Takes over the bytes, which must come from OPENSSL_malloc.
static inline int shim_SSL_set_status_response(SSL *connection, unsigned char *bytes, long count) {
    return (int)SSL_set_tlsext_status_ocsp_resp(connection, bytes, count);
}
// The digest that an OCSP CertID is made with; NULL if it isn't known.
static inline const EVP_MD *shim_OCSP_id_digest(const OCSP_CERTID *identifier) {
    ASN1_OBJECT *digest = NULL;
    OCSP_id_get0_info(NULL, &digest, NULL, NULL, (OCSP_CERTID *)identifier);
    return digest ? EVP_get_digestbyobj(digest) : NULL;
}
static inline int shim_BIO_get_mem_data(BIO *bio, char **bytes) {
    return (int)BIO_get_mem_data(bio, bytes);
}

// A P-256 key made as an EC_KEY, which OpenSSL 3.0 calls deprecated and yet puts into certificates
// forty times as fast as a provider's (PrivateKey.generateP256 says why). NULL if it failed.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static inline EVP_PKEY *shim_EVP_PKEY_new_P256(void) {
    EC_KEY *curve_key = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
    EVP_PKEY *key = EVP_PKEY_new();
    if (!curve_key || !key || !EC_KEY_generate_key(curve_key) || !EVP_PKEY_set1_EC_KEY(key, curve_key)) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    EC_KEY_free(curve_key);
    return key;
}
#pragma GCC diagnostic pop
