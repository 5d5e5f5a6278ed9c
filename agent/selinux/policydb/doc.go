// Package policydb reads the binary policies of SELinux: the rules of a policy about InfiniBand, after the compiler has
// processed modules and neverallow rules.
//
// A policy is read as the kernel reads it, from its first byte to its last, and anything that is not understood is an
// error. The reader keeps types and attributes, permissive domains, rules and constraints of the classes infiniband_pkey
// and infiniband_endport, and the labels of P_Keys and end ports.
//
// Source: Linux security/selinux/ss/policydb.c, avtab.c, conditional.c, ebitmap.c.
package policydb
