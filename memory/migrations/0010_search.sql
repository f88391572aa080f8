-- Search: what of the current revision of each live fact keyword and meaning find. All of it is derived from fact_content
-- and goes with it: a row here of a revision that was replaced, deleted or erased would be a leak.

-- The forward index: one row a fact. Its lexemes say which postings there are, so that they can be taken out again. `number`
-- stands for the fact in postings (an id may have 256 characters); it is random, so that any range of it is a fair sample.
CREATE TABLE fact_document (
  tenant_id uuid NOT NULL,
  fact_id text NOT NULL,
  number bigint NOT NULL CONSTRAINT fact_document_number_in_range CHECK (number BETWEEN 0 AND 4611686018427387903),
  length integer NOT NULL CONSTRAINT fact_document_length_is_not_negative CHECK (length >= 0),
  language text NOT NULL,
  lexemes text[] COLLATE "C" NOT NULL,
  frequencies smallint[] NOT NULL,
  CONSTRAINT fact_document_pkey PRIMARY KEY (tenant_id, fact_id) INCLUDE (number, length),
  CONSTRAINT fact_document_number_is_unique UNIQUE (tenant_id, number) INCLUDE (fact_id, length),
  CONSTRAINT fact_document_belongs_to_fact FOREIGN KEY (tenant_id, fact_id) REFERENCES fact (tenant_id, id),
  CONSTRAINT fact_document_counts_each_lexeme CHECK (cardinality(lexemes) = cardinality(frequencies))
);
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
CREATE TRIGGER fact_document_has_its_postings AFTER INSERT OR UPDATE OR DELETE ON fact_document
  FOR EACH ROW EXECUTE FUNCTION fact_document_has_its_postings();

-- One vector a fact, of one model; while a type changes its model, facts of both are searched, each with its own query vector.
CREATE TABLE fact_embedding (
  tenant_id uuid NOT NULL,
  fact_id text NOT NULL,
  model text NOT NULL,
  dims integer NOT NULL,
  embedding halfvec NOT NULL,
  CONSTRAINT fact_embedding_pkey PRIMARY KEY (tenant_id, fact_id),
  CONSTRAINT fact_embedding_belongs_to_fact FOREIGN KEY (tenant_id, fact_id) REFERENCES fact (tenant_id, id),
  CONSTRAINT fact_embedding_has_its_dims CHECK (vector_dims(embedding) = dims)
);
CREATE INDEX fact_embedding_by_model ON fact_embedding (tenant_id, model);
-- An exact search reads every vector it may see: kept in the row as long as a page can hold it, and never compressed.
ALTER TABLE fact_embedding ALTER COLUMN embedding SET STORAGE EXTERNAL;
ALTER TABLE fact_embedding SET (toast_tuple_target = 8160);
SELECT kindmem_protect('fact_embedding', 'SELECT, INSERT, UPDATE, DELETE');

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
