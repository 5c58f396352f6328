// Go's net/http as an origin: writes down each request, and answers with digests.
package main

import (
	"crypto/md5"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
)

func digest(text string) string { return fmt.Sprintf("%x", md5.Sum([]byte(text)))[:8] }

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	log.SetOutput(io.Discard)
	fmt.Printf("ready %d\n", listener.Addr().(*net.TCPAddr).Port)
	handler := http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		var body strings.Builder
		if _, err := io.Copy(&body, request.Body); err != nil {
			writer.WriteHeader(400)
			return
		}
		fmt.Fprintf(os.Stdout, "%x %x %d %s\n", request.Method, request.RequestURI, body.Len(), digest(body.String()))
		writer.Header().Set("X-Id", digest(request.Method+" "+request.RequestURI))
		io.WriteString(writer, digest(body.String()))
	})
	if len(os.Args) < 3 {
		log.Fatal(http.Serve(listener, handler))
	}
	// Without its own HTTP/2.
	server := http.Server{Handler: handler, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
	log.Fatal(server.ServeTLS(listener, os.Args[1], os.Args[2]))
}
