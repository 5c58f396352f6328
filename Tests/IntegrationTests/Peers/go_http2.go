// HTTP/2 by Go's net/http.
//
//	go_http2 serve CERTIFICATE KEY    an origin: /large/N has N bytes in one pattern, anything else what was sent, and a trailer
//	go_http2 fetch URL                by the proxy and the roots of the environment: twenty requests at one time, then a POST of
//	                                  what came to /echo
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
)

var block = func() []byte {
	bytes := make([]byte, 65536)
	for index := range bytes {
		bytes[index] = byte(index)
	}
	return bytes
}()

func answer(writer http.ResponseWriter, request *http.Request) {
	parts := strings.Split(request.URL.Path, "/")
	if len(parts) < 3 || parts[1] != "large" {
		writer.Header().Set("Trailer", "X-End")
		io.Copy(writer, request.Body)
		writer.Header().Set("X-End", "yes")
		return
	}
	left, _ := strconv.Atoi(parts[2])
	writer.Header().Set("Content-Length", parts[2])
	for left > 0 {
		piece := block
		if left < len(piece) {
			piece = piece[:left]
		}
		if _, err := writer.Write(piece); err != nil {
			return
		}
		left -= len(piece)
	}
}

func serve(certificate, key string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("{\"event\": \"ready\", \"port\": %d}\n", listener.Addr().(*net.TCPAddr).Port)
	return http.ServeTLS(listener, http.HandlerFunc(answer), certificate, key)
}

type fetched struct {
	version string
	status  int
	body    []byte
	err     error
}

func read(response *http.Response, err error) fetched {
	if err != nil {
		return fetched{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return fetched{response.Proto, response.StatusCode, body, err}
}

func fetch(address string) error {
	target, err := url.Parse(address)
	if err != nil {
		return err
	}
	results := make(chan fetched)
	for count := 0; count < 20; count++ {
		go func() { results <- read(http.Get(address)) }()
	}
	var first fetched
	statuses, digests := map[int]bool{}, map[string]bool{}
	for count := 0; count < 20; count++ {
		result := <-results
		if result.err != nil {
			return result.err
		}
		first = result
		statuses[result.status] = true
		sum := sha256.Sum256(result.body)
		digests[hex.EncodeToString(sum[:])] = true
	}
	target.Path = "/echo"
	echo := read(http.Post(target.String(), "application/octet-stream", bytes.NewReader(first.body)))
	if echo.err != nil {
		return echo.err
	}
	var received struct {
		SHA256 string `json:"sha256"`
		Length int    `json:"length"`
	}
	if err := json.Unmarshal(echo.body, &received); err != nil {
		return err
	}
	var list []int
	for status := range statuses {
		list = append(list, status)
	}
	text, err := json.Marshal(map[string]any{
		"protocol": first.version, "statuses": list, "length": len(first.body),
		"isSame": len(digests) == 1 && digests[received.SHA256], "echo": received.Length,
	})
	fmt.Println(string(text))
	return err
}

func main() {
	var err error
	if os.Args[1] == "serve" {
		err = serve(os.Args[2], os.Args[3])
	} else {
		err = fetch(os.Args[2])
	}
	if err != nil {
		text, _ := json.Marshal(map[string]string{"failed": err.Error()})
		fmt.Println(string(text))
		os.Exit(1)
	}
}
