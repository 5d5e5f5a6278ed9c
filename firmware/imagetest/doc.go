// Package imagetest makes firmware images and packages for tests: signed, wrong
// in a chosen way, and such that mstflint takes them for good. It shares no code
// with the packages that read them, so that one can judge the other.
package imagetest
