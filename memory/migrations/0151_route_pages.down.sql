DROP INDEX correction_route_by_page;
