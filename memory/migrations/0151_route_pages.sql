-- The page of a tenant's own correction routes: what waits to be configured first, then by name. Records may name very many.
CREATE INDEX correction_route_by_page ON correction_route (tenant_id, is_configured, name COLLATE "C");
