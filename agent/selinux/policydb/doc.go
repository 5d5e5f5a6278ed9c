// Package policydb reads the binary policies of SELinux: what a policy says of
// InfiniBand, after the compiler has made of modules and neverallow rules what it
// makes of them.
//
// A policy is read as the kernel reads it, from its first byte to its last, and what
// is not understood is an error. Kept are types and attributes, permissive domains,
// rules and constraints of the classes infiniband_pkey and infiniband_endport, and
// the labels of P_Keys and end ports.
//
// Source: Linux security/selinux/ss/policydb.c, avtab.c, conditional.c, ebitmap.c.
package policydb
