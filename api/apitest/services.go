package apitest

import (
	"testing"
	"time"

	"portcullis/api/hostca"
	"portcullis/api/keyring/keyringtest"
	"portcullis/api/results"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
)

// Issuer is the issuer of results that [NewResults] signs.
const Issuer = "https://portcullis.example"

// NewResults makes what signs attestation results, over a store; nil: one of its own.
func NewResults(t testing.TB, s *store.Store) *results.Service {
	t.Helper()
	if s == nil {
		s = store.New(memory.New(time.Now), "")
	}
	svc, err := results.New(results.Options{Store: s, Root: keyringtest.Root(t, "of tests"), Issuer: Issuer, Build: "test", Log: storetest.Quiet()})
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

// NewAuthority makes what certifies keys of hosts in the trust domain fabric.example.
func NewAuthority(t testing.TB) *hostca.Service {
	t.Helper()
	ca, err := hostca.New(hostca.Options{Store: store.New(memory.New(time.Now), ""), Root: keyringtest.Root(t, "of tests"), Domain: "fabric.example", Log: storetest.Quiet()})
	if err == nil {
		err = ca.Prepare(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return ca
}
