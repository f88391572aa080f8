-- What pages keep of their own. Everything that people correct lies in memory's tables.

-- Counts sign-in attempts across workers; before a tenant is known.
CREATE TABLE account_cache (
  key text NOT NULL CONSTRAINT account_cache_pkey PRIMARY KEY,
  value text NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX account_cache_by_expiry ON account_cache (expires_at);

-- A form's one-time key: the second of two sends finds where the first one led.
CREATE TABLE page_form (
  tenant_id uuid NOT NULL CONSTRAINT page_form_belongs_to_tenant REFERENCES tenant (id),
  sender text NOT NULL,
  once_key text NOT NULL CONSTRAINT page_form_key_has_length CHECK (length(once_key) BETWEEN 16 AND 64),
  led_to text NOT NULL,
  sent_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT page_form_is_sent_once PRIMARY KEY (tenant_id, sender, once_key)
);
CREATE INDEX page_form_by_age ON page_form (tenant_id, sent_at);
SELECT kindmem_protect('page_form', 'SELECT, INSERT, UPDATE, DELETE');

-- A link that an app's key made for one person; only a keyed digest of its token is kept.
CREATE TABLE page_link (
  tenant_id uuid NOT NULL CONSTRAINT page_link_belongs_to_tenant REFERENCES tenant (id),
  id uuid NOT NULL,
  digest bytea NOT NULL CONSTRAINT page_link_digest_has_length CHECK (octet_length(digest) = 32),
  subject_id text NOT NULL CONSTRAINT page_link_subject_has_length CHECK (length(subject_id) BETWEEN 1 AND 256),
  made_by text NOT NULL,
  made_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  opened_at timestamptz,
  CONSTRAINT page_link_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT page_link_digest_is_unique UNIQUE (tenant_id, digest),
  CONSTRAINT page_link_ends_soon CHECK (expires_at <= made_at + interval '15 minutes')
);
CREATE INDEX page_link_by_age ON page_link (tenant_id, expires_at);
SELECT kindmem_protect('page_link', 'SELECT, INSERT, UPDATE, DELETE');

-- What a verification found, in full, so that its page can be read again and shown to others.
CREATE TABLE verification_result (
  tenant_id uuid NOT NULL CONSTRAINT verification_result_belongs_to_tenant REFERENCES tenant (id),
  id uuid NOT NULL,
  run_id text NOT NULL,
  report_text text NOT NULL,
  product_version text NOT NULL,
  started_at timestamptz NOT NULL,
  finished_at timestamptz NOT NULL,
  asked_by text NOT NULL,
  CONSTRAINT verification_result_pkey PRIMARY KEY (tenant_id, id)
);
CREATE INDEX verification_result_newest_first ON verification_result (tenant_id, finished_at DESC, id DESC);
CREATE INDEX verification_result_by_run ON verification_result (tenant_id, run_id, finished_at DESC);
SELECT kindmem_protect('verification_result', 'SELECT, INSERT');
