package ek

import "errors"

// Classes of problems, for errors.Is. Each error says more.
var (
	ErrKind    = errors.New("EK template")
	ErrParse   = errors.New("EK certificate encoding")
	ErrWeak    = errors.New("EK too weak")
	ErrUsage   = errors.New("not an EK certificate")
	ErrChain   = errors.New("EK certificate chain")
	ErrExpired = errors.New("EK certificate validity")
	ErrRevoked = errors.New("EK denied")
)
