package shell

import "syscall"

// Windows has no signal that holds a process still: these are none that it
// knows, and process.signal does nothing with them. A card is guarded there by
// its arming time and its digits.
const sigHold, sigGoOn = syscall.Signal(-1), syscall.Signal(-2)

// onlyDirectory is not needed where nothing is waited for when it is opened.
const onlyDirectory = 0
