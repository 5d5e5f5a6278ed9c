package umad

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/mad"
)

// maxAgents is how many agents the kernel allows on one descriptor.
const maxAgents = 32

// Agent says which packets of a management class a Port deals with. It may
// send all packets of the class and gets the answers to its own requests.
type Agent struct {
	Class   mad.Class
	Version uint8 // of the class: 1, but 2 for subnet administration

	// Methods are the requests of other senders that the port accepts. If it is empty, the port accepts none, and other
	// processes may register for them.
	Methods []mad.Method

	// RMPP says that the owner segments and reassembles messages of several
	// MADs itself. Without it the kernel passes only single MADs.
	RMPP bool
}

// subnetAgents are the two agents of subnet management, the directed routes and
// the LID routed. A subnet manager takes the requests that are for it: SMInfo,
// by Get and Set, and traps.
func subnetAgents(asSM bool) []Agent {
	var methods []mad.Method
	if asSM {
		methods = []mad.Method{mad.MethodGet, mad.MethodSet, mad.MethodTrap, mad.MethodTrapRepress}
	}
	return []Agent{
		{Class: mad.ClassSubnDR, Version: 1, Methods: methods},
		{Class: mad.ClassSubn, Version: 1, Methods: methods},
	}
}

// saAgent is the agent of subnet administration. Acknowledgements of our answers have the method of the request (IBTA
// volume 1, 13.6.2.3). The kernel recognizes answers to our Reports by their transaction.
func saAgent() Agent {
	return Agent{
		Class: mad.ClassSubnAdm, Version: mad.SAClassVersion, RMPP: true,
		Methods: []mad.Method{
			mad.MethodGet, mad.MethodSet, mad.MethodGetTable, mad.MethodGetTrace, mad.MethodGetMulti, mad.MethodDelete,
		},
	}
}

// mask is the set of methods as the kernel takes it: bit m of 128.
func (a Agent) mask() (low, high uint64) {
	for _, m := range a.Methods {
		if m < 64 {
			low |= 1 << m
		} else {
			high |= 1 << (m & 63)
		}
	}
	return low, high
}

// qp is the queue pair of the class: 0 for SMPs, 1 for all others.
func (a Agent) qp() uint8 {
	if a.Class == mad.ClassSubn || a.Class == mad.ClassSubnDR {
		return 0
	}
	return 1
}

// agents are the numbers that the kernel assigned, by class; noAgent for a class that is not registered.
type agents [256]int16

const noAgent = -1

// register announces the agents on a descriptor that was just opened and finds
// out the header form.
func register(sys system, fd int, list []Agent) (form, *agents, error) {
	f := form56
	if sys.ioctl(fd, ioctlEnablePKey, nil) == nil {
		f = form64
	}
	var known agents
	for i := range known {
		known[i] = noAgent
	}
	second := true // REGISTER_AGENT2 is there, as far as we know
	for i, a := range list {
		id, used, err := registerOne(sys, fd, a, second)
		if err != nil {
			return 0, nil, &RegisterError{Class: a.Class, Kernel: sys.kernel(), Err: err}
		}
		// On a fresh descriptor the second call switches to the long header,
		// too; later on it changes nothing.
		if second = used; second && i == 0 {
			f = form64
		}
		known[a.Class] = int16(id)
	}
	return f, &known, nil
}

// registerOne announces an agent, by REGISTER_AGENT2 if wanted and possible.
// Kernels before 2014 answer that with ENOTTY or EINVAL. Newer ones say EINVAL
// when the class is taken, and then say so again.
func registerOne(sys system, fd int, a Agent, second bool) (id uint32, used bool, err error) {
	if second {
		arg := registration2(a)
		err = sys.ioctl(fd, ioctlRegister2, arg[:])
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTTY) {
			return agentID(arg[:], true, err)
		}
	}
	arg := registration(a)
	err = sys.ioctl(fd, ioctlRegister, arg[:])
	return agentID(arg[:], false, err)
}

// errAgentID says that the kernel broke its promise.
var errAgentID = errors.New("the kernel assigned an agent number above 31")

func agentID(arg []byte, second bool, err error) (uint32, bool, error) {
	if err != nil {
		return 0, second, err
	}
	id := binary.NativeEndian.Uint32(arg)
	if id >= maxAgents {
		return 0, second, errAgentID
	}
	return id, second, nil
}
