// Package packaging holds what turns the programs into packages, and the tests
// that hold the house rules: which package may import which, what the
// deterministic core may touch, what each program links, and that our packages
// install and leave cleanly.
package packaging
