// Package kept is what step 5 puts aside before it changes something: copies of
// the old versions of files and folders, with the notes of what each request
// changed, for a week and within a size limit. A person can have one request, or
// a whole session, undone. The copies are below the data directory, shared with
// the file system where that is possible; the notes are in the store.
package kept

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"localpc/app/store"
	"localpc/capabilities"
)

// For is how long an old version is kept.
const For = 7 * 24 * time.Hour

// tidyEvery is how often it is looked for what is kept no more.
const tidyEvery = time.Hour

// maxRequests is how many requests are known at most.
const maxRequests = 10_000

// brokenFor is how long nothing is promised after something could not be kept.
const brokenFor = time.Minute

// Options build a Kept. Dir and Store are needed.
type Options struct {
	// Dir is the directory of old versions; it is made when it is missing.
	Dir   string
	Store *store.Store
	// Limit is how many bytes are kept at most; nil or less than one: nothing.
	Limit func() int64
	// Changed is called when something can be undone, or can't any more; nil:
	// nobody is told.
	Changed func()
	Log     *slog.Logger
	Now     func() time.Time // nil: time.Now
}

// Kept keeps old versions. Safe for concurrent use.
type Kept struct {
	o   Options
	dir *dir

	mu      sync.Mutex
	all     map[string]*kept     // by request; guarded by mu
	broken  map[string]time.Time // when something could not be kept, by folder, "" for all; guarded by mu
	tidied  time.Time            // guarded by mu
	mirrors map[string]*mirror   // by folder; guarded by mu
	undoing sync.Mutex           // one undoing at a time
}

// kept is what is known of one request.
type kept struct {
	store.Kept
	about about
}

// about is what a request's notes know beside its steps. Serialised.
type about struct {
	Format int `json:"format"`
	// Began is when a command did, up to the Time of its notes.
	Began time.Time `json:"began,omitzero"`
}

// format is how old versions and steps are written now. 2: bundles.
const format = 2

var _ capabilities.Keep = (*Kept)(nil)

// Off is a Kept that keeps nothing, and says so.
func Off() *Kept { return build(Options{}) }

func build(o Options) *Kept {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Limit == nil {
		o.Limit = func() int64 { return 0 }
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	return &Kept{o: o, all: map[string]*kept{}, broken: map[string]time.Time{}, mirrors: map[string]*mirror{}}
}

// Open opens the directory of old versions. What an undoing that was cut off
// had begun is taken back, and what no note knows is removed.
func Open(ctx context.Context, o Options) (*Kept, error) {
	k := build(o)
	if !supported {
		return k, nil
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of old versions: %w", err)
	}
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of old versions: %w", err)
	}
	defer root.Close()
	if k.dir, err = dirOf(root); err != nil {
		return nil, fmt.Errorf("open the folder of old versions: %w", err)
	}
	if err := k.recover(ctx); err != nil {
		k.dir.close()
		return nil, err
	}
	k.Tidy(ctx)
	return k, nil
}

// on tells whether anything is kept at all.
func (k *Kept) on() bool { return k.dir != nil }

// Close lets go of what is open. Nothing is called afterwards.
func (k *Kept) Close() {
	if k.dir == nil {
		return
	}
	k.mu.Lock()
	mirrors := k.mirrors
	k.mirrors = map[string]*mirror{}
	k.mu.Unlock()
	for _, m := range mirrors {
		m.drop()
	}
	k.dir.close()
}

// Would tells whether so many bytes would be kept now.
func (k *Kept) Would(s *capabilities.Session, bytes int64) bool {
	limit, now := k.o.Limit(), k.o.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.on() && limit > 0 && bytes <= limit && now.Sub(k.broken[""]) >= brokenFor && now.Sub(k.broken[s.Folder]) >= brokenFor
}

// fail notes that something of a folder could not be kept; where the disk is
// full, nothing of any.
func (k *Kept) fail(folder string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	k.o.Log.Warn("An old version could not be kept", "err", err)
	k.mu.Lock()
	now := k.o.Now()
	maps.DeleteFunc(k.broken, func(_ string, at time.Time) bool { return now.Sub(at) >= brokenFor })
	if Full(err) {
		folder = ""
	}
	k.broken[folder] = now
	k.mu.Unlock()
}

// State tells whether what a request changed can be undone, or was.
func (k *Kept) State(request string) (can, undone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.all[request]; r != nil {
		return r.State == store.KeptWhole, r.State == store.KeptUndone
	}
	return false, false
}

// OfSession are the requests of a session that can be undone, the newest first.
func (k *Kept) OfSession(session string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []*kept
	for _, r := range k.all {
		if session != "" && r.Session == session && r.State == store.KeptWhole {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *kept) int { return int(b.Place - a.Place) })
	var out []string
	for _, r := range list {
		out = append(out, r.Request)
	}
	return out
}

// SessionOf is the session that a request belongs to; "" for an undoing, and
// where nothing is known.
func (k *Kept) SessionOf(request string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.all[request]; r != nil {
		return r.Session
	}
	return ""
}

// Bytes is how much is kept.
func (k *Kept) Bytes() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.total()
}

func (k *Kept) total() (bytes int64) {
	for _, r := range k.all {
		bytes += r.Bytes
	}
	return bytes
}

// over tells whether what was kept at from has been kept for long enough by now,
// on the steady clock or the wall's. A clock that was set back ends nothing: what
// seems to be of the future stays until there is no room for it.
func over(from, now time.Time) bool {
	return now.Sub(from) >= For || now.Round(0).Sub(from.Round(0)) >= For
}

// Tidy lets go of what has been kept long enough, and of the oldest beyond the
// limit. It does nothing when it was called within the last hour and there is
// room.
func (k *Kept) Tidy(ctx context.Context) {
	if !k.on() {
		return
	}
	k.mu.Lock()
	now, left := k.o.Now(), k.total()
	if now.Sub(k.tidied) < tidyEvery && left <= k.o.Limit() && len(k.all) <= maxRequests+maxRequests/10 {
		k.mu.Unlock()
		return
	}
	k.tidied = now
	var list, gone []*kept
	for _, r := range k.all {
		if r.State != store.KeptOpen {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *kept) int { return int(a.Place - b.Place) })
	for i, r := range list {
		// What has no old versions costs nothing, and is in nobody's way.
		if over(r.Time, now) || left > k.o.Limit() && r.Bytes > 0 || i < len(list)-maxRequests {
			left -= r.Bytes
			gone = append(gone, r)
		}
	}
	k.mu.Unlock()
	for _, r := range gone {
		if err := k.forget(ctx, r.Request); err != nil {
			k.o.Log.Warn("An old version could not be removed", "err", err)
		}
	}
	if len(gone) > 0 {
		k.o.Changed()
	}
}

// forget drops a request's notes, and then its old versions.
func (k *Kept) forget(ctx context.Context, request string) error {
	k.undoing.Lock()
	defer k.undoing.Unlock()
	steps, err := k.o.Store.KeptSteps(ctx, request)
	if err != nil {
		return err
	}
	if err := k.o.Store.DropKept(ctx, request); err != nil {
		return err
	}
	k.mu.Lock()
	delete(k.all, request)
	k.mu.Unlock()
	for _, s := range steps {
		k.discard(s.Object)
	}
	return nil
}

// put notes that a request is known.
func (k *Kept) put(r *kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[r.Request] = r
}

// grow counts bytes of a request.
func (k *Kept) grow(r *kept, bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r.Bytes += bytes
}

// ended closes a request's notes.
func (k *Kept) ended(ctx context.Context, r *kept) error {
	place, err := k.o.Store.KeepEnded(ctx, r.Request, r.Bytes)
	if err != nil {
		return err
	}
	k.mu.Lock()
	r.Place, r.State = place, store.KeptWhole
	k.all[r.Request] = r
	for _, of := range r.Undoes {
		was := k.all[of]
		if was == nil {
			continue
		}
		for _, b := range was.Undoes {
			if before := k.all[b]; before != nil && before.State == store.KeptUndone {
				before.State = store.KeptRedone
			}
		}
		was.State, was.Bytes = store.KeptUndone, 0
	}
	k.mu.Unlock()
	k.o.Changed()
	return nil
}

// newKept begins the notes of a request; session "" is for an undoing.
func (k *Kept) newKept(session, request, folder string, id capabilities.FileID) *kept {
	text, _ := json.Marshal(id) // plain numbers: never fails
	r := &kept{Kept: store.Kept{Request: request, Session: session, Folder: folder, FolderID: string(text), Time: k.o.Now(), State: store.KeptOpen}}
	r.tell(about{})
	return r
}

// ran is how long a command ran, of which it can't be told from its own work
// what others did meanwhile; 0 where they hardly had the time to.
func (r *kept) ran() time.Duration {
	if long := r.Time.Sub(r.about.Began); !r.about.Began.IsZero() && long >= longRun {
		return long
	}
	return 0
}

// tell has what is about a request go with its notes.
func (r *kept) tell(a about) {
	a.Format = format
	text, _ := json.Marshal(a) // plain numbers: never fails
	r.about, r.About = a, string(text)
}

// folderOf opens the folder that a request changed, if it is still the same.
func folderOf(r store.Kept) (*dir, error) {
	var id capabilities.FileID
	if err := json.Unmarshal([]byte(r.FolderID), &id); err != nil {
		return nil, err
	}
	return openSame(r.Folder, id)
}

func openSame(folder string, id capabilities.FileID) (*dir, error) {
	d, err := openDir(folder)
	if err != nil {
		return nil, err
	}
	n, err := d.lstat(".")
	if err == nil && !n.ID.Same(id) {
		err = errNotSame
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

var errNotSame = errors.New("another folder has taken its place")
