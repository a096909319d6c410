// Package mldsa is a stub of crypto/mldsa, which Go has from 1.27 on. It has no keys: tests with ML-DSA are left out.
package mldsa

import (
	"crypto"
	"errors"
	"io"
)

type (
	Parameters struct{ name string }
	PublicKey  struct{ parameters Parameters }
	PrivateKey struct{ public PublicKey }
	Options    struct{}
)

var errNone = errors.New("no ML-DSA")

func MLDSA44() Parameters { return Parameters{"ML-DSA-44"} }
func MLDSA65() Parameters { return Parameters{"ML-DSA-65"} }
func MLDSA87() Parameters { return Parameters{"ML-DSA-87"} }

func GenerateKey(p Parameters) (*PrivateKey, error)                             { return &PrivateKey{PublicKey{p}}, nil }
func Verify(*PublicKey, []byte, []byte, *Options) error                         { return errNone }
func (k *PublicKey) Parameters() Parameters                                     { return k.parameters }
func (k *PrivateKey) PublicKey() *PublicKey                                     { return &k.public }
func (k *PrivateKey) Public() crypto.PublicKey                                  { return &k.public }
func (k *PrivateKey) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) { return nil, errNone }
