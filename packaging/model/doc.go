// Package model has a model of admission, of leadership and of the change of M_Keys, in Promela. The command check.sh
// checks it with spin; README.md says what in the service each part of the model is.
package model
