"""Orders from the page: what is asked, what it would commit, and the order that the next pass carries out.

Called by `web.site`. An action is a `PageAction` in the table of `action_page.py`: a form, and a function from what was
filled in to an `OrderPreview`. The page shows the commits of the preview; the same form sent as a POST submits its
order, under the name of whoever is signed in. A module here is what an order is about, with its actions; none of them
decides by itself whether an order is possible, which the next pass judges anew.
"""
