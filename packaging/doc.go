// Package packaging holds the files that turn the programs into packages, and the tests of the project's rules: which
// package may import which, what the deterministic core may use, what each program links, and that our packages install and
// leave cleanly.
package packaging
