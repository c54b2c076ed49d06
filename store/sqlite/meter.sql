-- What is used up. These tables are made in files of any age, and an older
-- gateway leaves them alone: so they are no change of the schema.

CREATE TABLE IF NOT EXISTS meter (
	name   TEXT PRIMARY KEY,
	window INTEGER NOT NULL, -- when it began, 0 = it has no windows
	ends   INTEGER NOT NULL,
	used   INTEGER NOT NULL,
	extra  INTEGER NOT NULL, -- granted
	marks  TEXT    NOT NULL  -- JSON array: of what was granted
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS meter_ends ON meter (ends);

CREATE TABLE IF NOT EXISTS spend ( -- what was taken and may be settled
	op     TEXT PRIMARY KEY,
	ends   INTEGER NOT NULL, -- forgotten then
	amount INTEGER NOT NULL,
	spent  INTEGER NOT NULL,
	names  TEXT    NOT NULL, -- JSON array: of the meters
	reply  TEXT    NOT NULL  -- JSON session.Reserved
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS spend_ends ON spend (ends);
