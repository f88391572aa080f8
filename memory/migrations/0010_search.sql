-- Search: what of the current revision of each live fact keyword and meaning find. All of it is derived from fact_content
-- and goes with it: a row here of a revision that was replaced, deleted or erased would be a leak.
--
-- fact_document and fact_embedding carry what the read guard and the filters ask of a fact, so that a search reads one table and
-- joins nothing. Scope, type and first write of a fact never change; what does is kept equal by triggers.

-- The forward index: one row a fact. Its lexemes say which postings there are, so that they can be taken out again. `number`
-- stands for the fact in postings (an id may have 256 characters); it is random, so that any range of it is a fair sample.
CREATE TABLE fact_document (
  tenant_id uuid NOT NULL,
  number bigint NOT NULL CONSTRAINT fact_document_number_in_range CHECK (number BETWEEN 0 AND 4611686018427387903),
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  length integer NOT NULL CONSTRAINT fact_document_length_is_not_negative CHECK (length >= 0),
  fact_id text NOT NULL,
  type text NOT NULL,
  user_id text,
  org_id text,
  project_id text,
  thread_id text,
  session_id text,
  participant_id text,
  review text,
  language text NOT NULL,
  frequencies smallint[] NOT NULL,
  lexemes text[] COLLATE "C" NOT NULL,
  CONSTRAINT fact_document_pkey PRIMARY KEY (tenant_id, fact_id),
  CONSTRAINT fact_document_number_is_unique UNIQUE (tenant_id, number),
  CONSTRAINT fact_document_belongs_to_fact FOREIGN KEY (tenant_id, fact_id) REFERENCES fact (tenant_id, id),
  CONSTRAINT fact_document_counts_each_lexeme CHECK (cardinality(lexemes) = cardinality(frequencies))
);
CREATE INDEX fact_document_by_project ON fact_document (tenant_id, project_id);
-- A search reads rows of every fact it may see, and lexemes of none: they lie apart.
ALTER TABLE fact_document SET (toast_tuple_target = 256);
SELECT kindmem_protect('fact_document', 'SELECT, INSERT, UPDATE, DELETE');

-- The inverted index. Everything that ranking needs is in the one B-tree, whose comparisons are leakproof, so that row-level
-- security leaves it usable. No foreign key: it would ask once a lexeme and need a second index; the trigger below keeps
-- postings equal to documents, and the document has the foreign key.
CREATE TABLE posting (
  tenant_id uuid NOT NULL,
  document bigint NOT NULL,
  length integer NOT NULL,
  frequency smallint NOT NULL CONSTRAINT posting_frequency_is_positive CHECK (frequency > 0),
  lexeme text COLLATE "C" NOT NULL,
  CONSTRAINT posting_pkey PRIMARY KEY (tenant_id, lexeme, document) INCLUDE (length, frequency)
);
SELECT kindmem_protect('posting', 'SELECT, INSERT, DELETE');

-- Sequential scans are off: a plan that was kept while the table was small must not stay when it is large.
CREATE FUNCTION fact_document_has_its_postings() RETURNS trigger
LANGUAGE plpgsql SET enable_seqscan = off
AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM posting p
    WHERE p.tenant_id = OLD.tenant_id AND p.lexeme = ANY (OLD.lexemes) AND p.document = OLD.number;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO posting (tenant_id, document, length, frequency, lexeme)
    SELECT NEW.tenant_id, NEW.number, NEW.length, u.frequency, u.lexeme
    FROM unnest(NEW.lexemes, NEW.frequencies) AS u (lexeme, frequency);
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER fact_document_has_its_postings AFTER INSERT OR DELETE ON fact_document
  FOR EACH ROW EXECUTE FUNCTION fact_document_has_its_postings();
CREATE TRIGGER fact_document_keeps_its_postings AFTER UPDATE OF length, lexemes, frequencies, number ON fact_document
  FOR EACH ROW EXECUTE FUNCTION fact_document_has_its_postings();

-- One vector a fact, of one model; while a type changes its model, facts of both are searched, each with its own query vector.
CREATE TABLE fact_embedding (
  tenant_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  dims integer NOT NULL,
  fact_id text NOT NULL,
  type text NOT NULL,
  user_id text,
  org_id text,
  project_id text,
  thread_id text,
  session_id text,
  participant_id text,
  review text,
  model text NOT NULL,
  embedding halfvec NOT NULL,
  CONSTRAINT fact_embedding_pkey PRIMARY KEY (tenant_id, fact_id),
  CONSTRAINT fact_embedding_belongs_to_fact FOREIGN KEY (tenant_id, fact_id) REFERENCES fact (tenant_id, id),
  CONSTRAINT fact_embedding_has_its_dims CHECK (vector_dims(embedding) = dims)
);
CREATE INDEX fact_embedding_by_model ON fact_embedding (tenant_id, model);
CREATE INDEX fact_embedding_by_project ON fact_embedding (tenant_id, project_id);
-- An exact search reads every vector it may see: kept in the row as long as a page can hold it, and never compressed.
ALTER TABLE fact_embedding ALTER COLUMN embedding SET STORAGE EXTERNAL;
ALTER TABLE fact_embedding SET (toast_tuple_target = 8160);
SELECT kindmem_protect('fact_embedding', 'SELECT, INSERT, UPDATE, DELETE');

-- What the two tables say of a fact is what the fact says, whatever the writer sent.
CREATE FUNCTION search_row_says_what_its_fact_says() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  SELECT f.type, f.user_id, f.org_id, f.project_id, f.thread_id, f.session_id, f.participant_id, f.created_at, f.expires_at, f.review
  INTO NEW.type, NEW.user_id, NEW.org_id, NEW.project_id, NEW.thread_id, NEW.session_id, NEW.participant_id, NEW.created_at,
       NEW.expires_at, NEW.review
  FROM fact f WHERE f.tenant_id = NEW.tenant_id AND f.id = NEW.fact_id AND f.deleted_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'only a live fact is searched'
      USING ERRCODE = '23514', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER fact_document_says_what_its_fact_says BEFORE INSERT ON fact_document
  FOR EACH ROW EXECUTE FUNCTION search_row_says_what_its_fact_says();
CREATE TRIGGER fact_embedding_says_what_its_fact_says BEFORE INSERT ON fact_embedding
  FOR EACH ROW EXECUTE FUNCTION search_row_says_what_its_fact_says();

-- Facts whose vector is still to be made: the provider was away, is remote, or the type changed its model.
CREATE TABLE embedding_task (
  tenant_id uuid NOT NULL,
  fact_id text NOT NULL,
  model text NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  next_at timestamptz NOT NULL DEFAULT now(),
  last_failure text,
  CONSTRAINT embedding_task_pkey PRIMARY KEY (tenant_id, fact_id),
  CONSTRAINT embedding_task_belongs_to_fact FOREIGN KEY (tenant_id, fact_id) REFERENCES fact (tenant_id, id)
);
CREATE INDEX embedding_task_by_next ON embedding_task (tenant_id, next_at);
SELECT kindmem_protect('embedding_task', 'SELECT, INSERT, UPDATE, DELETE');

-- A fact that changes what searches ask of it takes its rows along; one that is deleted has none.
CREATE FUNCTION fact_takes_its_search_rows_along() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF NEW.deleted_at IS NOT NULL THEN
    DELETE FROM fact_document WHERE tenant_id = NEW.tenant_id AND fact_id = NEW.id;
    DELETE FROM fact_embedding WHERE tenant_id = NEW.tenant_id AND fact_id = NEW.id;
    DELETE FROM embedding_task WHERE tenant_id = NEW.tenant_id AND fact_id = NEW.id;
  ELSE
    UPDATE fact_document SET expires_at = NEW.expires_at, review = NEW.review
    WHERE tenant_id = NEW.tenant_id AND fact_id = NEW.id;
    UPDATE fact_embedding SET expires_at = NEW.expires_at, review = NEW.review
    WHERE tenant_id = NEW.tenant_id AND fact_id = NEW.id;
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER fact_takes_its_search_rows_along AFTER UPDATE OF expires_at, review, deleted_at ON fact
  FOR EACH ROW
  WHEN (OLD.expires_at IS DISTINCT FROM NEW.expires_at OR OLD.review IS DISTINCT FROM NEW.review
        OR OLD.deleted_at IS DISTINCT FROM NEW.deleted_at)
  EXECUTE FUNCTION fact_takes_its_search_rows_along();
