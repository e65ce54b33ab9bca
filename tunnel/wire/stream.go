package wire

// Follow is what a hub sends after a request, with the same id: a piece of an
// upload, input for a process, a terminal's new size.
type Follow interface {
	Payload
	follows() Type
}

func (*FileChunk) follows() Type    { return TypeFileChunk }
func (*ProcessInput) follows() Type { return TypeProcessInput }
func (*TerminalSize) follows() Type { return TypeProcessResize }

// FollowType is the message that carries f.
func FollowType(f Follow) Type { return f.follows() }

// Follows tells whether follow is a frame that belongs to request.
func Follows(request, follow Type) bool {
	switch follow {
	case TypeFileChunk:
		return request == TypeFileWrite
	case TypeProcessInput, TypeProcessResize:
		return request == TypeProcessStart
	}
	return false
}

// DataLen is how many bytes of p count against credit.
func DataLen(p Payload) int {
	switch d := p.(type) {
	case *ProcessOutput:
		return len(d.Data)
	case *FileChunk:
		return len(d.Data)
	case *ProcessInput:
		return len(d.Data)
	}
	return 0
}

// Stream is one request on its way to a machine, as the faces of a hub know it.
// One goroutine at a time may call Recv, and one Send.
type Stream interface {
	// Recv gives the next frame of the reply; io.EOF follows the last. An ERROR
	// of the machine, and the loss of it, are errors: a *Error. The data of a
	// FILE_CHUNK is good until Recv is called again.
	Recv() (Message, error)
	// Send sends what follows the request, as soon as the machine has room for
	// it. io.EOF means that the request has ended; Recv says how.
	Send(Follow) error
	// Close cancels the request unless its reply has come whole. It is safe to
	// call more than once, and while Recv or Send wait.
	Close()
}
