package web

import (
	"errors"
	"time"
)

// Pending is a computer that waits for a person's answer.
type Pending struct {
	ID, Client, ClientName                              string
	Machine, MachineName, System, Address, Match, Scope string
	Device                                              bool
	Until                                               time.Time
}

// ErrTooMany means that too many wrong codes were typed.
var ErrTooMany = errors.New("too many tries")
