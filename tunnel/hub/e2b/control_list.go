package e2b

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"localpc/tunnel/hub/store"
)

func (f *Face) list(w http.ResponseWriter, r *http.Request, key store.Key) {
	q, wanted, sentence := listQuery(r.URL.Query())
	if sentence != "" {
		writeError(w, http.StatusBadRequest, sentence)
		return
	}
	out := []map[string]any{}
	if wanted {
		q.Principal = key.ID
		limit := q.Limit
		q.Limit++ // to learn whether there is a next page
		list, err := f.o.Store.Sandboxes(r.Context(), q)
		if err != nil {
			f.o.Log.Error("Sandboxes could not be listed", "err", err)
			httpError(w, err)
			return
		}
		if len(list) > limit {
			list = list[:limit]
			last := list[limit-1]
			token := fmt.Sprintf("%d.%s", last.Started.UnixMilli(), last.ID)
			w.Header().Set("X-Next-Token", base64.RawURLEncoding.EncodeToString([]byte(token)))
		}
		for _, b := range list {
			out = append(out, f.detailJSON(b, f.known(b.Machine)))
		}
	}
	writeJSON(w, http.StatusOK, out)
}

// listQuery reads the query of list. wanted is false when no sandbox can match.
func listQuery(v url.Values) (q store.Query, wanted bool, sentence string) {
	q = store.Query{Limit: maxPage, Template: v.Get("template"), Oldest: v.Get("order") == "asc"}
	if s := v.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxPage {
			return q, false, fmt.Sprintf("The limit must be 1 to %d.", maxPage)
		}
		q.Limit = n
	}
	if s := v.Get("startedAfter"); s != "" {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return q, false, "startedAfter is not a time."
		}
		q.Since = t
	}
	if s := v.Get("nextToken"); s != "" {
		raw, err := base64.RawURLEncoding.DecodeString(s)
		ms, id, ok := strings.Cut(string(raw), ".")
		at, err2 := strconv.ParseInt(ms, 10, 64)
		if err != nil || err2 != nil || !ok {
			return q, false, "nextToken is not one that this hub gave."
		}
		q.AfterStart, q.AfterID = time.UnixMilli(at), id
	}
	if s := v.Get("metadata"); s != "" {
		// A query string in a query string, and its parts are escaped once more.
		pairs, err := url.ParseQuery(s)
		if err != nil {
			return q, false, "The metadata to look for cannot be read."
		}
		q.Metadata = map[string]string{}
		for k, values := range pairs {
			key, err := url.PathUnescape(k)
			value, err2 := url.PathUnescape(values[0])
			if err != nil || err2 != nil {
				return q, false, "The metadata to look for cannot be read."
			}
			q.Metadata[key] = value
		}
	}
	// Those that run, and those that are paused, unless only some are named.
	running, paused := false, false
	for _, list := range v["state"] {
		for _, state := range strings.Split(list, ",") {
			running, paused = running || state == "running", paused || state == "paused"
		}
	}
	if len(v["state"]) == 0 {
		running, paused = true, true
	}
	q.Paused, q.NotRunning = paused, !running
	return q, running || paused, ""
}
