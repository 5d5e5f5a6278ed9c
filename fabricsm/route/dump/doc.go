// Package dump writes a fabric and its forwarding tables in the file formats of
// OpenSM and infiniband-diags, for the tools that read those: opensm-subnet.lst,
// opensm.fdbs, opensm-lfts.dump and guid2lid, what ibnetdiscover prints, and the
// list of path SLs and SL2VL tables that ibdmchk takes.
//
// Descriptions are what devices say and end up in files that line-based tools
// parse: every character that could end a field is replaced.
package dump
