// Package profile says which settings an adapter must have before a tenant gets
// its host, and why (Default); what of that a site wants otherwise (Load); which
// items bring an adapter there (Profile.Items), as a signed file for one card
// (Profile.File); and how an adapter differs (Profile.Judge).
//
// What an adapter does not know, or did not let itself be asked, is a finding of
// its own and never "as wanted".
package profile
