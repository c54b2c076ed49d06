-- Times are Unix milliseconds, 0 = none. A lane is one session key; its rows
-- are numbered within a generation. Wide columns stand last, so that a scan
-- for the narrow ones does not follow their overflow pages.

CREATE TABLE meta (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE lane (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	key      TEXT    NOT NULL UNIQUE,
	gen      INTEGER NOT NULL,
	seq      INTEGER NOT NULL,
	sent     INTEGER NOT NULL,
	last     INTEGER NOT NULL, -- type byte of the newest row
	phase    TEXT    NOT NULL,
	turn     INTEGER NOT NULL,
	turns    INTEGER NOT NULL,
	turn_at  INTEGER NOT NULL,
	owner    TEXT    NOT NULL,
	attempts INTEGER NOT NULL,
	stop     INTEGER NOT NULL,
	released INTEGER NOT NULL,
	tickets  INTEGER NOT NULL,
	notes    INTEGER NOT NULL,
	epoch    INTEGER NOT NULL,
	nonce    TEXT    NOT NULL,
	until    INTEGER NOT NULL,
	touched  INTEGER NOT NULL,
	due      INTEGER,          -- when the lane wants a look; NULL = never
	outs     INTEGER NOT NULL, -- parts in the outbox
	out_n    INTEGER NOT NULL, -- number of the newest part
	out_next INTEGER NOT NULL, -- the head is not tried before
	out_own  TEXT    NOT NULL, -- nonce that is sending the head, or that the rest is kept for until out_next
	title    TEXT    NOT NULL,
	prefs    BLOB
);
-- SQLite plans a statement anew when a key bound to it turns from or to 0 or 1,
-- so no lane has the id 1.
INSERT INTO sqlite_sequence (name, seq) VALUES ('lane', 1);
CREATE INDEX lane_due ON lane (due, key) WHERE due IS NOT NULL;
CREATE INDEX lane_out ON lane (key, out_next) WHERE outs > 0;

CREATE TABLE slot (
	lane    INTEGER NOT NULL REFERENCES lane (id) ON DELETE CASCADE,
	ticket  INTEGER NOT NULL,
	version INTEGER NOT NULL,
	want    TEXT    NOT NULL,
	turn    INTEGER NOT NULL,
	held    INTEGER NOT NULL,
	open    INTEGER NOT NULL,
	grp     TEXT    NOT NULL,
	author  TEXT    NOT NULL,
	at      INTEGER NOT NULL,
	msgs    TEXT    NOT NULL, -- JSON array
	data    BLOB,
	PRIMARY KEY (lane, ticket)
) WITHOUT ROWID;

CREATE TABLE job (
	lane  INTEGER NOT NULL REFERENCES lane (id) ON DELETE CASCADE,
	id    TEXT    NOT NULL,
	turn  INTEGER NOT NULL,
	owner TEXT    NOT NULL,
	name  TEXT    NOT NULL,
	state TEXT    NOT NULL,
	at    INTEGER NOT NULL,
	body  TEXT    NOT NULL,
	data  BLOB,
	PRIMARY KEY (lane, id)
) WITHOUT ROWID;

CREATE TABLE line ( -- session.Row
	lane INTEGER NOT NULL REFERENCES lane (id) ON DELETE CASCADE,
	gen  INTEGER NOT NULL,
	seq  INTEGER NOT NULL,
	turn INTEGER NOT NULL,
	type INTEGER NOT NULL,
	onto INTEGER NOT NULL,
	note INTEGER NOT NULL,
	tick INTEGER NOT NULL,
	at   INTEGER NOT NULL,
	data BLOB,
	PRIMARY KEY (lane, gen, seq)
) WITHOUT ROWID;

CREATE TABLE seen ( -- dedupe marks
	lane   INTEGER NOT NULL REFERENCES lane (id) ON DELETE CASCADE,
	key    TEXT    NOT NULL,
	at     INTEGER NOT NULL,
	ticket INTEGER NOT NULL,
	done   INTEGER NOT NULL,
	PRIMARY KEY (lane, key)
) WITHOUT ROWID;

CREATE TABLE fate (
	lane    INTEGER NOT NULL REFERENCES lane (id) ON DELETE CASCADE,
	ticket  INTEGER NOT NULL,
	state   TEXT    NOT NULL,
	final   INTEGER NOT NULL,
	turn    INTEGER NOT NULL,
	step    INTEGER NOT NULL,
	waited  INTEGER NOT NULL,
	at      INTEGER NOT NULL,
	changed INTEGER NOT NULL,
	msgs    TEXT    NOT NULL, -- JSON array
	PRIMARY KEY (lane, ticket)
) WITHOUT ROWID;

CREATE TABLE part (
	lane    INTEGER NOT NULL REFERENCES lane (id) ON DELETE CASCADE,
	n       INTEGER NOT NULL,
	id      TEXT    NOT NULL,
	kind    TEXT    NOT NULL,
	turn    INTEGER NOT NULL,
	state   TEXT    NOT NULL,
	attempt INTEGER NOT NULL,
	since   INTEGER NOT NULL,
	tried   INTEGER NOT NULL, -- sending, but given as unknown: since of the attempt before
	data    BLOB,
	PRIMARY KEY (lane, n)
) WITHOUT ROWID;

-- The last write of a lease holder with its answer, for a retry.
CREATE TABLE memo (
	lane  INTEGER PRIMARY KEY REFERENCES lane (id) ON DELETE CASCADE,
	op    TEXT NOT NULL,
	begun INTEGER NOT NULL, -- the answer is a session.Begun, else a Committed
	reply BLOB NOT NULL     -- JSON
);

CREATE TABLE doc (
	name    TEXT PRIMARY KEY,
	version INTEGER NOT NULL,
	data    BLOB
) WITHOUT ROWID;

-- One row, in the order of session.Stats.
CREATE TABLE stats (
	id          INTEGER PRIMARY KEY CHECK (id = 2),
	accepted    INTEGER NOT NULL DEFAULT 0,
	duplicates  INTEGER NOT NULL DEFAULT 0,
	full        INTEGER NOT NULL DEFAULT 0,
	consumed    INTEGER NOT NULL DEFAULT 0,
	steered     INTEGER NOT NULL DEFAULT 0,
	dropped     INTEGER NOT NULL DEFAULT 0,
	in_slot     INTEGER NOT NULL DEFAULT 0,
	turns       INTEGER NOT NULL DEFAULT 0,
	ended       INTEGER NOT NULL DEFAULT 0,
	recovered   INTEGER NOT NULL DEFAULT 0,
	fenced      INTEGER NOT NULL DEFAULT 0,
	replayed    INTEGER NOT NULL DEFAULT 0,
	out_planned INTEGER NOT NULL DEFAULT 0,
	out_sent    INTEGER NOT NULL DEFAULT 0,
	out_unknown INTEGER NOT NULL DEFAULT 0,
	out_dead    INTEGER NOT NULL DEFAULT 0,
	sessions    INTEGER NOT NULL DEFAULT 0
);
INSERT INTO stats (id) VALUES (2);
