// Package hca reads what InfiniBand adapters (HCAs) a host has, and which
// machine and boot it is, from the kernel's file trees.
//
// It needs no privilege beyond reading and works for every vendor. The trees
// are hostile input: files are read with a bound, links cannot leave the tree,
// and every problem is reported with the file it is in. An adapter that cannot
// be read completely is an error, never left out.
package hca
