// Certificates with ML-DSA keys (RFC 9881), and a client that receives them, by Go's standard library.
//
//	make FOLDER         writes CAs, and certificates for localhost with their keys
//	fetch CA PORT ...   visits https://localhost:PORT/ twice, and prints the port, the server's kind of key, both
//	                    handshakes, the group, the protocol and the body
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/mldsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

func main() {
	log.SetFlags(0)
	switch {
	case len(os.Args) == 3 && os.Args[1] == "make":
		makeAll(os.Args[2])
	case len(os.Args) > 3 && os.Args[1] == "fetch":
		for _, port := range os.Args[3:] {
			fmt.Println(port, fetch(os.Args[2], port))
		}
	default:
		log.Fatal("usage: make FOLDER | fetch CA PORT ...")
	}
}

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// makeAll writes p256, mldsa44, mldsa65 and mldsa87 signed by a CA with a P-256 key, and below44, which a CA with an
// ML-DSA-44 key has signed; ca.pem has both CAs.
func makeAll(folder string) {
	classical := newAuthority("Classical CA", must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))
	postQuantum := newAuthority("ML-DSA CA", must(mldsa.GenerateKey(mldsa.MLDSA44())))
	write(folder, "ca.pem", "CERTIFICATE", classical.certificate.Raw, postQuantum.certificate.Raw)
	classical.issue(folder, "p256", must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))
	classical.issue(folder, "mldsa44", must(mldsa.GenerateKey(mldsa.MLDSA44())))
	classical.issue(folder, "mldsa65", must(mldsa.GenerateKey(mldsa.MLDSA65())))
	classical.issue(folder, "mldsa87", must(mldsa.GenerateKey(mldsa.MLDSA87())))
	postQuantum.issue(folder, "below44", must(mldsa.GenerateKey(mldsa.MLDSA44())))
}

func newAuthority(name string, key crypto.Signer) authority {
	certificate := template(name)
	certificate.IsCA, certificate.KeyUsage = true, x509.KeyUsageCertSign
	der := must(x509.CreateCertificate(rand.Reader, certificate, certificate, key.Public(), key))
	return authority{must(x509.ParseCertificate(der)), key}
}

func (ca authority) issue(folder, name string, key crypto.Signer) {
	certificate := template("localhost")
	certificate.KeyUsage, certificate.DNSNames = x509.KeyUsageDigitalSignature, []string{"localhost"}
	der := must(x509.CreateCertificate(rand.Reader, certificate, ca.certificate, key.Public(), ca.key))
	write(folder, name+".pem", "CERTIFICATE", der)
	write(folder, name+".key", "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key)))
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(48 * time.Hour),
		BasicConstraintsValid: true,
	}
}

func write(folder, name, kind string, blocks ...[]byte) {
	var text []byte
	for _, der := range blocks {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...)
	}
	if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
		log.Fatal(err)
	}
}

// fetch describes two visits with Go's defaults, in two connections.
func fetch(ca, port string) string {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(ca)))
	config := &tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
	var handshakes [2]string
	var last string
	for visit := range handshakes {
		response, err := client.Get("https://localhost:" + port + "/")
		if err != nil {
			return "error: " + err.Error()
		}
		body := must(io.ReadAll(response.Body))
		response.Body.Close()
		client.CloseIdleConnections()
		handshakes[visit] = "full"
		if response.TLS.DidResume {
			handshakes[visit] = "resumed"
		}
		key := kind(response.TLS.PeerCertificates[0])
		last = fmt.Sprint(response.TLS.CurveID, " ", response.Proto, " ", string(body))
		if visit == 1 {
			last = fmt.Sprint(key, " ", handshakes[0], " ", handshakes[1], " ", last)
		}
	}
	return last
}

func kind(certificate *x509.Certificate) string {
	key, ok := certificate.PublicKey.(*mldsa.PublicKey)
	if !ok {
		return "other"
	}
	switch key.Parameters() {
	case mldsa.MLDSA44():
		return "mldsa44"
	case mldsa.MLDSA65():
		return "mldsa65"
	case mldsa.MLDSA87():
		return "mldsa87"
	}
	return "unknown"
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
