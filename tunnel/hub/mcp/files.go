package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

const (
	// maxLines of a file are read at once, unless limit says less.
	maxLines = 2000
	// maxLine bounds one line that is shown; the rest of it is left out.
	maxLine = 4 << 10
	// maxImage is the largest picture that is shown.
	maxImage = 3 << 20
	// maxRaw and defaultRaw bound what is read as base64.
	maxRaw, defaultRaw = 1 << 20, 48 << 10
	// sniffed is how much of a file is looked at to tell what it is.
	sniffed = 8 << 10
)

// contents is a file on its way from the machine. It is read until io.EOF; an
// end before the announced one is an error.
type contents struct {
	s      wire.Stream
	size   int64 // of the whole file
	length int64 // of what comes
	got    int64
	rest   []byte
}

// openFile asks for a file, from offset on; length < 0 is to its end.
func (f *Face) openFile(ctx context.Context, b store.Sandbox, path string, offset, length int64) (*contents, error) {
	p := &wire.FileRead{SessionID: b.ID, Path: path, Offset: offset, WaitMS: f.patience()}
	if length >= 0 {
		p.Length = &length
	}
	s, err := f.o.Backend.Do(ctx, b, wire.TypeFileRead, p)
	if err != nil {
		return nil, err
	}
	msg, err := s.Recv()
	head, ok := msg.Payload.(*wire.FileContents)
	if err == nil && !ok {
		err = wire.Errorf(wire.CodeInternal, "The computer did not say how long the file is.")
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return &contents{s: s, size: head.Size, length: head.Length}, nil
}

func (c *contents) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		msg, err := c.s.Recv()
		if err != nil {
			return 0, err
		}
		chunk, ok := msg.Payload.(*wire.FileChunk)
		switch {
		case ok:
			c.rest = chunk.Data
			c.got += int64(len(chunk.Data))
		case c.got != c.length:
			return 0, wire.Errorf(wire.CodeInternal, "The file came in part only.")
		default:
			return 0, io.EOF
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *contents) Close() { c.s.Close() }

type readFile struct {
	where
	Path   string `json:"path" jsonschema:"of the file"`
	Offset int64  `json:"offset,omitempty" jsonschema:"the first line to read, from 1; with as=base64 the first byte, from 0"`
	Limit  int64  `json:"limit,omitempty" jsonschema:"how many lines (at most and by default 2000) or, with as=base64, bytes"`
	As     string `json:"as,omitempty" jsonschema:"auto (text, or a picture as an image), text, or base64"`
}

func (f *Face) readFile(ctx context.Context, req *sdk.CallToolRequest, who Principal, in readFile) *sdk.CallToolResult {
	if in.Offset < 0 || in.Limit < 0 {
		return refusal(wire.Errorf(wire.CodeInvalid, "The offset and the limit cannot be negative."))
	}
	switch in.As {
	case "", "auto", "text", "base64":
	default:
		return refusal(wire.Errorf(wire.CodeInvalid, "as must be auto, text or base64, not %q.", in.As))
	}
	return f.do(ctx, req, who, "read "+short(in.Path), func(ctx context.Context, j *job) (*sdk.CallToolResult, error) {
		return f.within(ctx, j, req, in.Machine, func(_ store.Machine, b store.Sandbox) (*sdk.CallToolResult, error) {
			if in.As == "base64" {
				return f.readRaw(ctx, b, in)
			}
			c, err := f.openFile(ctx, b, in.Path, 0, -1)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			r := bufio.NewReaderSize(c, sniffed)
			head, err := r.Peek(sniffed)
			if err != nil && err != io.EOF {
				return nil, err
			}
			kind := http.DetectContentType(head)
			switch {
			case in.As != "text" && isImage(kind):
				return readImage(c, r, in.Path, kind)
			case in.As != "text" && isBinary(head):
				return nil, wire.Errorf(wire.CodePathKind, "%s is not text but %s (%s). Read it with as=base64, or look at it with a command.", in.Path, kind, inBytes(c.size))
			}
			return readLines(c, r, in)
		})
	})
}

func isImage(kind string) bool {
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// isBinary tells whether a file that begins so is no text. UTF-16 has zeros.
func isBinary(head []byte) bool {
	return bytes.IndexByte(head, 0) >= 0 && !bytes.HasPrefix(head, bomLE) && !bytes.HasPrefix(head, bomBE)
}

func readImage(c *contents, r io.Reader, path, kind string) (*sdk.CallToolResult, error) {
	if c.size > maxImage {
		return nil, wire.Errorf(wire.CodeTooLarge, "The picture %s has %s; at most %s are shown. Make it smaller with a command first.", path, inBytes(c.size), inBytes(maxImage))
	}
	data, err := io.ReadAll(io.LimitReader(r, maxImage+1))
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{Data: data, MIMEType: kind}}}, nil
}

// readRaw reads bytes as they are.
func (f *Face) readRaw(ctx context.Context, b store.Sandbox, in readFile) (*sdk.CallToolResult, error) {
	limit := in.Limit
	if limit == 0 {
		limit = defaultRaw
	}
	c, err := f.openFile(ctx, b, in.Path, in.Offset, min(limit, maxRaw))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	data, err := io.ReadAll(io.LimitReader(c, maxRaw+1))
	if err != nil {
		return nil, err
	}
	next := in.Offset + int64(len(data))
	structured := map[string]any{"base64": base64.StdEncoding.EncodeToString(data), "offset": in.Offset, "bytes": len(data), "size": c.size}
	content := []sdk.Content{text(structured["base64"].(string))}
	if next < c.size {
		structured["next"] = next
		content = append(content, text(fmt.Sprintf("[bytes %d to %d of %d; go on with offset=%d]", in.Offset, next, c.size, next)))
	}
	return &sdk.CallToolResult{Content: content, StructuredContent: structured}, nil
}

// readLines reads a window of lines; what comes after it is not fetched. There
// is no structured content: clients that prefer it would show a model the text
// as JSON has it, and it is to copy the text exactly.
func readLines(c *contents, r io.Reader, in readFile) (*sdk.CallToolResult, error) {
	lines := bufio.NewReaderSize(transform.NewReader(r, unicode.BOMOverride(transform.Nop)), 64<<10)
	first, limit := max(in.Offset, 1), min(in.Limit, maxLines)
	if limit == 0 {
		limit = maxLines
	}
	var b strings.Builder
	line, shown, cut, more := int64(1), int64(0), false, false
	for ; ; line++ {
		if shown == limit || b.Len() >= maxText {
			_, err := lines.Peek(1)
			if err != nil && err != io.EOF {
				return nil, err
			}
			more = err == nil
			break
		}
		part, long, err := readLine(lines, line >= first)
		if err != nil && err != io.EOF {
			return nil, err
		}
		if line >= first && len(part) > 0 {
			b.Write(part)
			cut = cut || long
			shown++
		}
		if err == io.EOF {
			break
		}
	}
	last := first + shown - 1
	var notes []string
	switch {
	case c.size == 0:
		notes = append(notes, "the file is empty")
	case shown == 0:
		notes = append(notes, fmt.Sprintf("the file has fewer than %d lines", first))
	case more:
		notes = append(notes, fmt.Sprintf("lines %d to %d of a file of %s; go on with offset=%d", first, last, inBytes(c.size), last+1))
	}
	if cut {
		notes = append(notes, fmt.Sprintf("lines longer than %s are cut", inBytes(maxLine)))
	}
	if !utf8.ValidString(b.String()) {
		notes = append(notes, "some bytes are not UTF-8 and are shown as \uFFFD")
	}
	var content []sdk.Content
	if shown > 0 {
		content = append(content, text(toText(b.String())))
	}
	if len(notes) > 0 {
		content = append(content, text("["+strings.Join(notes, "; ")+"]"))
	}
	return &sdk.CallToolResult{Content: content}, nil
}

func toText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// readLine reads one line with its end, and keeps at most maxLine bytes of it
// (or none, unless keep is set); long tells that something was left out.
func readLine(r *bufio.Reader, keep bool) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		room := maxLine - len(line)
		switch {
		case !keep:
		case len(part) <= room:
			line = append(line, part...)
		default:
			if !long {
				line = append([]byte(atRune(string(append(line, part[:room]...)), maxLine-utf8.UTFMax)), "…\n"...)
			}
			long = true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

type writeFile struct {
	where
	Path     string `json:"path" jsonschema:"of the file; folders that are missing are made"`
	Content  string `json:"content" jsonschema:"all of the new contents"`
	Encoding string `json:"encoding,omitempty" jsonschema:"of content: text (default) or base64"`
}

func (f *Face) writeFile(ctx context.Context, req *sdk.CallToolRequest, who Principal, in writeFile) *sdk.CallToolResult {
	data := []byte(in.Content)
	switch in.Encoding {
	case "", "text":
	case "base64":
		var err error
		if data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(in.Content), "")); err != nil {
			return refusal(wire.Errorf(wire.CodeInvalid, "The content is not valid base64, so nothing was written."))
		}
	default:
		return refusal(wire.Errorf(wire.CodeInvalid, "encoding must be text or base64, not %q.", in.Encoding))
	}
	return f.do(ctx, req, who, "write "+short(in.Path), func(ctx context.Context, j *job) (*sdk.CallToolResult, error) {
		return f.within(ctx, j, req, in.Machine, func(_ store.Machine, b store.Sandbox) (*sdk.CallToolResult, error) {
			e, err := f.put(ctx, b, in.Path, data)
			if err != nil {
				return nil, err
			}
			return said(fmt.Sprintf("Wrote %s to %s.", inBytes(int64(len(data))), e.Path), map[string]any{"path": e.Path, "size": e.Size}), nil
		})
	})
}

// put writes a file whole.
func (f *Face) put(ctx context.Context, b store.Sandbox, path string, data []byte) (*wire.Entry, error) {
	s, err := f.o.Backend.Do(ctx, b, wire.TypeFileWrite, &wire.FileWrite{SessionID: b.ID, Path: path, WaitMS: f.patience()})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), wire.MaxChunk)
		err := s.Send(&wire.FileChunk{Data: data[:n], Last: n == len(data)})
		data = data[n:]
		if errors.Is(err, io.EOF) {
			break // the machine has answered already
		}
		if err != nil {
			return nil, err
		}
	}
	msg, err := s.Recv()
	if err != nil {
		return nil, err
	}
	return entryOf(msg.Payload)
}

func entryOf(p wire.Payload) (*wire.Entry, error) {
	stat, ok := p.(*wire.FileStatResponse)
	if !ok || stat.Entry == nil {
		return nil, wire.Errorf(wire.CodeInternal, "The computer did not say what it did.")
	}
	return stat.Entry, nil
}
