// Package profile says which settings an adapter must have before a tenant gets its host, and why (Default). It reads the
// differences that a site wants (Load). It returns the items that bring an adapter there (Profile.Items), as a signed file
// for one card (Profile.File), and reports how an adapter differs (Profile.Judge).
//
// A value that an adapter does not know, or that could not be read, is a finding of its own and never "as wanted".
package profile
