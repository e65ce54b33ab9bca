package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// pieceSize is how much of a file is read at once.
const pieceSize = 1 << 20

// keptForDetail is how much of the beginning and the end of a file is kept for
// its log entry.
const keptForDetail = 4 << 10

// readOp is FILE_READ: FILE_CONTENTS, the chunks, ACK.
type readOp struct {
	request
	p *wire.FileRead
	f *os.File
	n node
}

func (o *readOp) look(context.Context) (capabilities.Description, error) {
	a, p, err := o.j.at(o.p.Path, true)
	if err != nil {
		return capabilities.Description{}, err
	}
	if !p.exists() {
		return capabilities.Description{}, notFound(o.p.Path)
	}
	if !p.regular() {
		return capabilities.Description{}, notRegular(o.p.Path, p.node)
	}
	// Opened without blocking, and looked at once it is open: what was at this
	// name a moment ago proves nothing.
	if o.f, err = p.base.root.OpenFile(p.rel, os.O_RDONLY|openFlags, 0); err != nil {
		return capabilities.Description{}, fileError(err, o.p.Path)
	}
	if o.n, err = lstatFile(o.f); err != nil {
		return capabilities.Description{}, fileError(err, o.p.Path)
	}
	if !o.n.mode.IsRegular() {
		return capabilities.Description{}, notRegular(o.p.Path, o.n)
	}
	length := o.length()
	d := looksOnly("read", "Read "+named(p), fmt.Sprintf("%%s wants to read %s (%s)", named(p), consent.Bytes(length)), exact(a, p), p)
	d.Effects = []consent.Effect{{Kind: consent.EffectRead, Text: "reads 1 file, " + consent.Bytes(length), Count: 1, Bytes: length}}
	d.Payload = payload{Type: wire.TypeFileRead, Path: o.p.Path, Offset: o.p.Offset, Length: o.p.Length}
	// A log that grows while the card is open is the file that was shown, as
	// long as the card would say the same of it.
	d.Fingerprint = fmt.Sprintf("%s\x00%s %s", p.key(), o.n.which(), consent.Bytes(length))
	return d, nil
}

// length is how much there is to send.
func (o *readOp) length() int64 {
	n := max(o.n.size-o.p.Offset, 0)
	if o.p.Length != nil {
		n = min(n, *o.p.Length)
	}
	return n
}

func (o *readOp) run(ctx context.Context, out capabilities.Output) (capabilities.Result, error) {
	left := o.length()
	begin := &wire.FileContents{Size: o.n.size, Length: left, MTime: o.n.mtime.UnixMilli()}
	if err := out.Send(ctx, wire.TypeFileContents, begin); err != nil {
		return capabilities.Result{}, err
	}
	res := capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}}
	kept := capabilities.Keeper{Max: keptForDetail}
	buf := make([]byte, min(left, pieceSize))
	for at := o.p.Offset; left > 0; {
		if ctx.Err() != nil {
			return res, context.Cause(ctx)
		}
		n, err := o.f.ReadAt(buf[:min(left, int64(len(buf)))], at)
		for piece := range slices.Chunk(buf[:n], wire.MaxChunk) {
			if err := out.Send(ctx, wire.TypeFileChunk, &wire.FileChunk{Data: piece}); err != nil {
				return res, err
			}
			_, _ = kept.Write(piece)
			at, left, res.Sent = at+int64(len(piece)), left-int64(len(piece)), res.Sent+int64(len(piece))
		}
		switch {
		case errors.Is(err, io.EOF) && left > 0:
			return res, wire.Errorf(wire.CodeChanged, "%s became shorter while it was being read. Read it again.", shown(o.p.Path))
		case err != nil && !errors.Is(err, io.EOF):
			return res, fileError(err, o.p.Path)
		}
	}
	res.Outcome, res.Output = consent.Bytes(res.Sent)+" read", kept.Bytes()
	return res, nil
}

func (o *readOp) close() {
	if o.f != nil {
		o.f.Close()
	}
	o.request.close()
}
