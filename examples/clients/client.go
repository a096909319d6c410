// Reconnects for each request: client.go URL CA VISITS CONCURRENT default|resume
package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
)

func main() {
	url, ca, resume := os.Args[1], os.Args[2], os.Args[5] == "resume"
	client := &http.Client{Transport: transport(ca, resume)}
	get(client, url)
	visits, _ := strconv.Atoi(os.Args[3])
	for range visits - 1 {
		get(client, url)
	}
	concurrent, _ := strconv.Atoi(os.Args[4])
	var all sync.WaitGroup
	for range concurrent {
		all.Add(1)
		go func() {
			defer all.Done()
			get(client, url)
		}()
	}
	all.Wait()
}

func transport(ca string, resume bool) *http.Transport {
	pem, err := os.ReadFile(ca)
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: roots}
	if resume {
		// Without a cache Go never resumes. 0 means 64 names, one session each.
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	return &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
}

func get(client *http.Client, url string) {
	response, err := client.Get(url)
	if err != nil {
		log.Fatal(err)
	}
	// TLS 1.3 tickets arrive with the response: read it to its end.
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
}
