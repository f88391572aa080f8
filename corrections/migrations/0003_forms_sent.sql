-- What a form said when it was sent, as a keyed digest: the same form with another text is told apart from a second send.
ALTER TABLE page_form ADD COLUMN said bytea CONSTRAINT page_form_said_has_length CHECK (octet_length(said) = 32);
