package fabricport

import "time"

// DialTimeout bounds one attempt to attach to a port.
const DialTimeout = 10 * time.Second
