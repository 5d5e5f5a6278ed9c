// Package imagetest makes firmware images and packages for tests: signed, wrong in a chosen way, and accepted by mstflint.
// It shares no code with the packages that read them, so that each can check the other.
package imagetest
