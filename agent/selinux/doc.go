// Package selinux writes the SELinux labels of a host's InfiniBand partitions as a module in CIL: which domains may use
// which P_Key, and the one domain that may send subnet management packets.
//
// The compilers of SELinux check little of this: a P_Key of 0x10000 labels 0. If one key has two labels, the second is
// dropped. A prefix loses its lower half. None of this is an error. So everything is checked here, and a policy with such a
// mistake is refused. The labels come from the service and from the operator, never from what the host says about itself.
//
// The kernel enforces this on hosts that the provider keeps, and between the containers of one host. It is no boundary
// against a tenant with root, who owns the kernel: that boundary is in the switch.
//
// Source: Linux drivers/infiniband/core/security.c and security/selinux; the CIL reference of the SELinux project.
package selinux
