/// Error types of RFC 9209 section 2.3. Their series begin at 0, so that alerts see the first count.
package enum RefusalErrors {
    package static let all = [
        "connection_refused", "connection_terminated", "connection_timeout", "connection_write_timeout",
        "destination_ip_prohibited", "destination_unavailable", "dns_error", "dns_timeout", "http_protocol_error",
        "http_request_denied",
        "http_request_error", "http_response_body_size", "http_response_content_coding",
        "http_response_header_section_size", "http_response_incomplete", "http_response_timeout",
        "proxy_configuration_error", "proxy_internal_error", "proxy_internal_response", "proxy_loop_detected",
        "tls_alert_received", "tls_certificate_error", "tls_protocol_error",
    ]
}
