// Package eventlogtest writes event logs of measured boots, for tests and
// demonstrations: right ones, and ones that are wrong in one way.
package eventlogtest
