package e2b

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"localpc/tunnel/wire"
)

// download serves GET and HEAD of /files?path=.
func (f *Face) download(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if err := queryUser(q); err != nil {
		writeError(w, http.StatusUnauthorized, err.Error())
		return
	}
	packed, ok := wantsGzip(r)
	if !ok {
		writeError(w, http.StatusNotAcceptable, "The file can be had as it is, or packed with gzip; neither is accepted.")
		return
	}
	if q.Get("path") == "" {
		writeError(w, http.StatusBadRequest, "The path to read is missing.")
		return
	}
	if err := login(q.Get("path")); err != nil {
		httpError(w, err)
		return
	}
	c := callOf(r.Context())
	req := &wire.FileRead{SessionID: c.sandbox.ID, Path: q.Get("path")}
	asked := parseRange(r)
	if packed {
		asked = span{}
	}
	if r.Method == http.MethodHead || asked.last > 0 {
		// Only its size is needed, or its size is needed first.
		e, err := f.file(r.Context(), c, req.Path)
		if err != nil {
			httpError(w, err)
			return
		}
		if asked, ok = asked.of(e.Size); !ok {
			tooShort(w, e.Size)
			return
		}
		if r.Method == http.MethodHead {
			contentHeaders(w.Header(), req.Path, &wire.FileContents{Size: e.Size, Length: asked.length(e.Size), MTime: e.MTime}, asked, packed)
			w.WriteHeader(asked.status())
			return
		}
	}
	req.Offset = asked.start
	if asked.ranged && asked.end >= 0 {
		n := asked.end - asked.start + 1
		req.Length = &n
	}
	s, msg, err := f.opened(r.Context(), c, wire.TypeFileRead, func() wire.Payload {
		req.WaitMS = f.wait(c)
		return req
	})
	if err != nil {
		httpError(w, err)
		return
	}
	defer s.Close()
	head, ok := msg.Payload.(*wire.FileContents)
	if !ok {
		httpError(w, wire.Errorf(wire.CodeInternal, "The computer did not say how long the file is."))
		return
	}
	if asked, ok = asked.of(head.Size); !ok {
		tooShort(w, head.Size)
		return
	}
	contentHeaders(w.Header(), req.Path, head, asked, packed)
	w.WriteHeader(asked.status())
	if err := send(w, s, head.Length, packed); err != nil {
		f.o.Log.Info("Download ended early", "session", c.sandbox.ID, "err", err)
		// The headers are out: only a broken connection tells the client.
		panic(http.ErrAbortHandler)
	}
}

// file describes what a name leads to, which must be a file.
func (f *Face) file(ctx context.Context, c *call, name string) (*wire.Entry, error) {
	s, msg, err := f.opened(ctx, c, wire.TypeFileStat, func() wire.Payload {
		return &wire.FileStat{SessionID: c.sandbox.ID, Path: name, Follow: true, WaitMS: f.wait(c)}
	})
	if err != nil {
		return nil, err
	}
	s.Close()
	switch reply, ok := msg.Payload.(*wire.FileStatResponse); {
	case !ok:
		return nil, wire.Errorf(wire.CodeInternal, "The computer did not say what there is.")
	case !reply.Exists:
		return nil, wire.Errorf(wire.CodePathNotFound, "There is nothing at %s.", name)
	case reply.Entry.Kind != "file":
		return nil, wire.Errorf(wire.CodePathKind, "%s is not a file.", name)
	default:
		return reply.Entry, nil
	}
}

// contentHeaders are those of a file, or a part of one. A file of the person's
// never becomes a page of this hub.
func contentHeaders(h http.Header, name string, head *wire.FileContents, asked span, packed bool) {
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", disposition(name))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Vary", "Accept-Encoding")
	if head.MTime > 0 {
		h.Set("Last-Modified", time.UnixMilli(head.MTime).UTC().Format(http.TimeFormat))
	}
	if packed {
		h.Set("Content-Encoding", "gzip")
		return
	}
	h.Set("Content-Length", strconv.FormatInt(head.Length, 10))
	h.Set("Accept-Ranges", "bytes")
	if asked.ranged {
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", asked.start, asked.start+head.Length-1, head.Size))
	}
}

func tooShort(w http.ResponseWriter, size int64) {
	w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", size))
	writeError(w, http.StatusRequestedRangeNotSatisfiable, "The file is shorter than that.")
}

var packers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return z
}}

// send passes on what the machine reads of a file, length bytes.
func send(w http.ResponseWriter, s Stream, length int64, packed bool) (err error) {
	rc := http.NewResponseController(w)
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }()
	var out io.Writer = w
	if packed {
		z := packers.Get().(*gzip.Writer)
		z.Reset(w)
		out = z
		defer func() {
			if err == nil {
				err = z.Close()
			}
			packers.Put(z)
		}()
	}
	sent := int64(0)
	for {
		msg, err := s.Recv()
		if err != nil {
			return err
		}
		_ = rc.SetWriteDeadline(time.Now().Add(stall))
		chunk, ok := msg.Payload.(*wire.FileChunk)
		if !ok { // ACK
			if sent != length {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		n, err := out.Write(chunk.Data)
		sent += int64(n)
		if err != nil {
			return err
		}
	}
}

// span is the part of a file that a client asks for; its zero value is all of it.
type span struct {
	ranged bool
	start  int64
	end    int64 // the last byte; -1: to the end
	last   int64 // so many bytes at the end instead; of makes a start of it
	none   bool  // not one byte
}

// parseRange reads one range. What is not one, and several, are left out, and
// the whole file is sent; so it is where the client would have to be told
// whether the file is still the one that it has a part of.
func parseRange(r *http.Request) span {
	spec, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	from, to, ok2 := strings.Cut(spec, "-")
	if !ok || !ok2 || r.Header.Get("If-Range") != "" {
		return span{}
	}
	if from == "" {
		n, err := strconv.ParseInt(to, 10, 63)
		if err != nil || n < 0 {
			return span{}
		}
		return span{ranged: true, end: -1, last: n, none: n == 0}
	}
	start, err := strconv.ParseInt(from, 10, 63)
	if err != nil || start < 0 {
		return span{}
	}
	if to == "" {
		return span{ranged: true, start: start, end: -1}
	}
	end, err := strconv.ParseInt(to, 10, 63)
	if err != nil || end < start {
		return span{}
	}
	return span{ranged: true, start: start, end: end}
}

// of is the part in a file of that size; false: there is nothing of it. Of an
// empty file all is sent.
func (p span) of(size int64) (span, bool) {
	if p.last > 0 {
		p.start, p.last = max(size-p.last, 0), 0
	}
	switch {
	case !p.ranged:
		return p, true
	case size == 0 && p.start == 0 && !p.none:
		return span{}, true
	}
	return p, p.start < size && !p.none
}

func (p span) length(size int64) int64 {
	if !p.ranged {
		return size
	}
	end := size - 1
	if p.end >= 0 {
		end = min(end, p.end)
	}
	return max(end-p.start+1, 0)
}

func (p span) status() int {
	if p.ranged {
		return http.StatusPartialContent
	}
	return http.StatusOK
}

// wantsGzip tells whether a file is to be packed; ok is false when nothing that
// can be had is accepted. What a client's library accepts by itself, a list of
// several ways, is no wish: a file goes fastest as it is. Parts are of the file
// as it is.
func wantsGzip(r *http.Request) (packed, ok bool) {
	accepts := map[string]bool{}
	others := false
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, params, _ := strings.Cut(strings.ToLower(one), ";")
		name = strings.TrimSpace(name)
		weight, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(params), "q="), 64)
		accepts[name] = err != nil || weight > 0
		others = others || accepts[name] && name != "" && name != "gzip" && name != "identity" && name != "*"
	}
	any, named := accepts["*"]
	gzips, saysGzip := accepts["gzip"]
	gzips = gzips || any && !saysGzip
	plain, saysPlain := accepts["identity"]
	if plain = plain || !saysPlain && (any || !named); !plain {
		return gzips, gzips
	}
	return saysGzip && gzips && !others && r.Header.Get("Range") == "", true
}

func disposition(name string) string {
	if d := mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}); d != "" {
		return d
	}
	return "attachment"
}
